// Expanding, filtering and projecting in one: what a layer gives of a few rows is in a near cache
// when the next one reads it.
#include "kernels/conv_depthwise.h"
#include "kernels/conv_direct.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

namespace {

// A block of work is a strip of output rows of one image for a part of the expanded channels, which
// are computed in pairs of vectors. A block goes down its strip a few rows at a time, as many as
// stay in a near cache with the rows that the depthwise convolution reads for them. Of those it
// keeps what it will read again.
//
// Without projecting every pair is a part. Projecting sums over all channels: in large images there
// is one part, and cores share strips. In small ones too many rows would be expanded for two
// strips, so there are two parts, each with a sum of its own; they are added at the end.
struct Plan {
  DirectLayout expand, project;
  ConvSizes sizes;  // of the depthwise convolution
  bool projects;
  int64_t overlap;  // rows that neighbouring output rows both look at
  int64_t pairs, parts;
  int64_t vectors;                     // of the largest part
  int64_t strip = 1, strips = 1;       // output rows of a strip
  int64_t rows = 1;                    // output rows at a time
  int64_t kept = TILE_VECTORS;         // expanded vectors: of one pair, or of all for the next rows
  int64_t expanded = 0, filtered = 0;  // floats of a vector of these, with what is looked at
  int64_t result;                      // floats of an image of y

  FORCE_INLINE Plan(const ExpandDepthwise& f, int threads)
      : expand(f.expand.shape),
        project(f.project.shape),
        sizes(f.depthwise.shape),
        projects(f.project.weights != nullptr),
        overlap(max_of<int64_t>(0, sizes.reach_h - f.depthwise.shape.stride_h)),
        pairs(ceil_div(expand.k_vectors, TILE_VECTORS)),
        parts(!projects ? pairs : min_of<int64_t>(pairs, sizes.pixels < 28 * 28 ? 2 : 1)),
        vectors(ceil_div(pairs, parts) * TILE_VECTORS),
        result((projects ? project : expand).k_vectors * sizes.pixels * VL) {
    constexpr int64_t NEAR = 96 * 1024;  // floats
    const ConvShape& s = f.depthwise.shape;
    // As many blocks as threads where they are of one size, elsewhere enough to even out.
    const int64_t wanted = threads == 1 ? 1 : projects ? threads : 4 * threads;
    strips = max_of<int64_t>(
        1, min_of(sizes.oh / max_of<int64_t>(1, overlap), ceil_div(wanted, s.n * parts)));
    strip = ceil_div(sizes.oh, strips);
    strips = ceil_div(sizes.oh, strip);
    const int64_t width = InputRows(s, 0, 1).width, pixel = vectors * VL;
    const int64_t looked_at = InputRows(s, 0, strip).rows * width * TILE_VECTORS * VL;
    const int64_t row = (projects ? sizes.ow : 0) * pixel;
    rows = strip;
    if (looked_at + strip * row > NEAR) {
      kept = vectors;
      const int64_t fit = (NEAR - overlap * width * pixel) / (s.stride_h * width * pixel + row);
      rows = max_of<int64_t>(1, min_of(strip, fit));
      rows = ceil_div(strip, ceil_div(strip, rows));
    }
    expanded = InputRows(s, 0, rows).rows * width * VL;
    filtered = projects ? rows * sizes.ow * VL : 0;
  }

  FORCE_INLINE int64_t blocks(int64_t n) const { return n * strips * parts; }
};

// What all blocks read, and the sums of all parts but the first.
struct Shared {
  Run* runs;  // over the channels of x
  int64_t run_count;
  float *expand_bias, *bias, *project_bias, *sums;
  int64_t bytes;
  FORCE_INLINE Shared(const Plan& p, const ExpandDepthwise& f, void* scratch)
      : run_count(ceil_div(f.expand.shape.c, VL)) {
    Slices slices(scratch);
    runs = slices.take<Run>(run_count);
    expand_bias = slices.take(p.expand.k_vectors * VL);
    bias = slices.take(p.expand.k_vectors * VL);
    project_bias = slices.take(p.projects ? p.project.k_vectors * VL : 0);
    sums = slices.take(p.projects ? (p.parts - 1) * f.expand.shape.n * p.result : 0);
    bytes = slices.bytes();
  }
};

// What a block computes on the way, [vector][row][column][VL] each.
struct Lane {
  float *expanded, *filtered;
  Run* runs;  // over the channels of `filtered`
  int64_t bytes;
  FORCE_INLINE Lane(const Plan& p, void* scratch) {
    Slices slices(scratch);
    expanded = slices.take(p.expanded * p.kept);
    filtered = slices.take(p.filtered * p.vectors);
    runs = slices.take<Run>(p.projects ? p.vectors : 0);
    bytes = slices.bytes();
  }
};

// Biases of all vectors, missing ones zero.
FORCE_INLINE void fill_bias(const ExpandDepthwise::Layer& layer, int64_t vectors, float* bias) {
  __builtin_memset(bias, 0, vectors * VL * sizeof(float));
  if (layer.bias) copy(layer.bias, layer.shape.k, bias);
}

// One block of work.
class Block {
 public:
  FORCE_INLINE Block(const ExpandDepthwise& f, const Plan& plan, const Shared& shared,
                     const Groups& groups, void* scratch, const float* x, float* y, int64_t block)
      : f_(f),
        plan_(plan),
        shared_(shared),
        groups_(groups),
        own_(plan, scratch),
        part_(block % plan.parts),
        image_(block / plan.parts / plan.strips),
        begin_(plan.pairs * part_ / plan.parts * TILE_VECTORS),
        end_(min_of(plan.expand.k_vectors, plan.pairs * (part_ + 1) / plan.parts * TILE_VECTORS)),
        x_(x + image_ * shared.run_count * f.expand.shape.h * f.expand.shape.w * VL),
        y_(y),
        channels_(min_of(f.expand.shape.k, end_ * VL) - begin_ * VL) {
    expanding_.runs = shared.runs;
    expanding_.run_count = shared.run_count;
    expanding_.out_row = VL;
    expanding_.out_vector = plan.expanded;
    expanding_.bounds = f.expand.bounds;
    const int64_t top = block / plan.parts % plan.strips * plan.strip;
    const int64_t bottom = min_of(top + plan.strip, plan.sizes.oh);
    for (int64_t first = top; first < bottom; first += plan.rows) {
      const int64_t count = min_of(plan.rows, bottom - first);
      for (int64_t vector = begin_; vector < end_; vector += TILE_VECTORS) {
        filter(vector, first, count, first > top);
      }
      if (plan.projects) project(first, count);
    }
  }

 private:
  // A pair of vectors of output rows [first, first + count); `again`: after plan.rows before these.
  FORCE_INLINE void filter(int64_t vector, int64_t first, int64_t count, bool again) {
    const ConvShape& s = f_.depthwise.shape;
    const ConvSizes& z = plan_.sizes;
    const InputRows in(s, first, count);
    const int64_t line = in.width * VL, inputs = f_.expand.shape.c;
    const int vectors = plan_.expand.vectors_in_pair(vector);
    float* expanded = own_.expanded + (vector - begin_) % plan_.kept * plan_.expanded;
    int64_t known = again ? plan_.overlap : 0;
    for (int v = 0; known && v < vectors; v++) {
      float* to = expanded + v * plan_.expanded;
      copy(to + plan_.rows * s.stride_h * line, known * line, to);
    }
    expanding_.w_step = vectors * VL;
    const int64_t filters = TILE_VECTORS * VL * inputs;
    const Ahead ahead(plan_.expand.k_vectors * VL * inputs, filters,
                      (in.rows - known) * RowTiles(s.w).tiles, expanding_);
    TilePointers at = {nullptr, plan_.expand.pair((float*)f_.expand.weights, 0, vector), nullptr};
    at.bias_vector = shared_.expand_bias + vector * VL;
    at.ahead = ahead.at(at.w + filters, 0);

    const Taps taps = {s.kh, 0, s.kw, s.kw, s.dilation_h * line, s.dilation_w * VL};
    for (int64_t row = 0; row < count; row++) {
      const int64_t place = row * s.stride_h;
      for (; known < place + z.reach_h; known++) {
        expand_row(in.top + known, vectors, in.width, at, expanded + known * line);
      }
      for (int v = 0; v < vectors; v++) {
        const int64_t c = (vector + v) * VL;
        const Bounds& bounds = f_.depthwise.bounds;
        const Ends ends = {load(shared_.bias + c), splat(bounds.low), splat(bounds.high)};
        float* to = plan_.projects
                        ? own_.filtered + (vector - begin_ + v) * plan_.filtered + row * z.ow * VL
                        : y_ + image_ * plan_.result + (c * z.oh + (first + row) * VL) * z.ow;
        groups_.sum(taps, expanded + v * plan_.expanded + place * line,
                    f_.depthwise.weights + c * z.taps, ends, nullptr, to);
      }
    }
  }

  // Input row `from`, which may lie outside of the image, of a pair of vectors, and the border.
  FORCE_INLINE void expand_row(int64_t from, int vectors, int64_t width, TilePointers& at,
                               float* row) {
    const ConvShape& s = f_.depthwise.shape;
    const bool outside = from < 0 || from >= s.h;
    for (int v = 0; v < vectors; v++) {
      float* border = row + v * plan_.expanded;
      __builtin_memset(border, 0, (outside ? width : s.pad_l) * VL * sizeof(float));
      if (outside) continue;
      __builtin_memset(border + (s.pad_l + s.w) * VL, 0, s.pad_r * VL * sizeof(float));
    }
    if (outside) return;
    const RowTiles tiles(s.w);
    for (int64_t t = 0; t < tiles.tiles; t++) {
      at.a = x_ + (from * s.w + tiles.begin(t)) * VL;
      at.out = row + (s.pad_l + tiles.begin(t)) * VL;
      tile_for(Spacing::kVector, tiles.height(t), vectors)(expanding_, at);
      at.ahead += expanding_.ahead_step * shared_.run_count;
    }
  }

  // What the filtered channels of this part give to output rows [first, first + count).
  FORCE_INLINE void project(int64_t first, int64_t count) {
    const ConvSizes& z = plan_.sizes;
    const DirectLayout& layout = plan_.project;
    const int64_t all = f_.expand.shape.k;
    TileShape shape;
    shape.runs = own_.runs;
    shape.run_count = ceil_div(channels_, VL);
    shape.out_row = VL;
    shape.out_vector = z.pixels * VL;
    if (plan_.parts == 1) shape.bounds = f_.project.bounds;
    for (int64_t i = 0; i < shape.run_count; i++) {
      own_.runs[i] = {(ptrdiff_t)(i * plan_.filtered),
                      (ptrdiff_t)min_of<int64_t>(VL, channels_ - i * VL)};
    }
    const RowTiles tiles(count * z.ow);
    const Ahead ahead(layout.k_vectors * VL * all, TILE_VECTORS * VL * channels_, tiles.tiles,
                      shape);
    const int64_t corner = image_ * plan_.result + first * z.ow * VL;
    float* out = part_ ? shared_.sums + (part_ - 1) * f_.expand.shape.n * plan_.result : y_;
    for (int64_t k = 0; k < layout.k_vectors; k += TILE_VECTORS) {
      const int vectors = layout.vectors_in_pair(k);
      shape.w_step = vectors * VL;
      const float* filters = layout.pair((float*)f_.project.weights, 0, k);
      for (int64_t t = 0; t < tiles.tiles; t++) {
        const int64_t place = corner + (k * z.pixels + tiles.begin(t)) * VL;
        TilePointers at = {own_.filtered + tiles.begin(t) * VL,
                           filters + begin_ * VL * vectors * VL, out + place};
        if (!part_) {
          at.bias_vector = shared_.project_bias + k * VL;
          if (f_.add) at.add = f_.add + place;
        }
        at.ahead = ahead.at(at.w + vectors * VL * all, t);
        tile_for(Spacing::kVector, tiles.height(t), vectors)(shape, at);
      }
    }
  }

  const ExpandDepthwise& f_;
  const Plan& plan_;
  const Shared& shared_;
  const Groups& groups_;
  const Lane own_;
  const int64_t part_, image_;
  const int64_t begin_, end_;  // vectors of this part
  const float* x_;             // of this image
  float* y_;
  const int64_t channels_;  // of this part
  TileShape expanding_;
};

}  // namespace

int64_t expand_depthwise_scratch_bytes(const ExpandDepthwise& f, int threads) {
  const Plan plan(f, threads);
  return Shared(plan, f, nullptr).bytes +
         lane_count(threads, plan.blocks(f.expand.shape.n)) * Lane(plan, nullptr).bytes;
}

void expand_depthwise(const ExpandDepthwise& f, const float* x, float* y, void* scratch,
                      const Parallel& parallel) {
  const ConvShape& s = f.depthwise.shape;
  const Plan plan(f, parallel.threads);
  const Shared shared(plan, f, scratch);
  const int64_t lane_bytes = Lane(plan, nullptr).bytes;
  const Groups groups(s, plan.sizes.ow);
  for (int64_t i = 0; i < shared.run_count; i++) {
    shared.runs[i] = {(ptrdiff_t)(i * s.h * s.w * VL),
                      (ptrdiff_t)min_of<int64_t>(VL, f.expand.shape.c - i * VL)};
  }
  fill_bias(f.expand, plan.expand.k_vectors, shared.expand_bias);
  fill_bias(f.depthwise, plan.expand.k_vectors, shared.bias);
  if (plan.projects) fill_bias(f.project, plan.project.k_vectors, shared.project_bias);

  for_blocks(parallel, plan.blocks(s.n), [&](int64_t block, int lane) {
    Block(f, plan, shared, groups, (char*)scratch + shared.bytes + lane * lane_bytes, x, y, block);
  });

  if (!plan.projects || plan.parts == 1) return;
  const vf low = splat(f.project.bounds.low), high = splat(f.project.bounds.high);
  for_ranges(parallel, s.n * plan.result / VL, ELEMENTS / VL / 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * VL; i < end * VL; i += VL) {
      store(y + i, min(high, max(low, load(y + i) + load(shared.sums + i))));
    }
  });
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
