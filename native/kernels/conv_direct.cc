#include "kernels/conv_direct.h"

#include "kernels/functions.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

// ---- layouts -----------------------------------------------------------------

void block_pixels(int channels, int64_t distance, int64_t pixels, const float* x, float* blocked) {
  for (int64_t j = 0; j < pixels; j += VL) {
    const int width = (int)min_of<int64_t>(VL, pixels - j);
    vf block[VL];
    load_block(x + j, distance, channels, width, block);
    transpose(block);
    for (int l = 0; l < width; l++) store(blocked + (j + l) * VL, block[l]);
  }
}

void load_rows(const DirectLayout& layout, const InputRows& in, bool x_is_blocked, const float* x,
               float* rows) {
  const ConvShape& s = layout.s;
  if (layout.plain) return pad_image(s, in, s.c, x, rows);
  const std::size_t left = s.pad_l * VL * sizeof(float), right = s.pad_r * VL * sizeof(float);
  for (int64_t c = 0; c < s.c; c += VL) {
    for (int64_t i = 0; i < in.rows; i++, rows += in.width * VL) {
      const int64_t y = in.top + i;
      if (y < 0 || y >= s.h) {
        __builtin_memset(rows, 0, in.width * VL * sizeof(float));
        continue;
      }
      float* inside = rows + s.pad_l * VL;
      __builtin_memset(rows, 0, left);
      if (x_is_blocked) {
        __builtin_memcpy(inside, x + (c * s.h + y * VL) * s.w, s.w * VL * sizeof(float));
      } else {
        block_pixels((int)min_of<int64_t>(VL, s.c - c), s.h * s.w, s.w, x + (c * s.h + y) * s.w,
                     inside);
      }
      __builtin_memset(inside + s.w * VL, 0, right);
    }
  }
}

int64_t blocked_bytes(int64_t n, int64_t c, int64_t hw) {
  return n * round_up(c, VL) * hw * sizeof(float);
}

void to_blocked(int64_t n, int64_t c, int64_t hw, const float* x, float* blocked,
                const Parallel& parallel) {
  const int64_t vectors = ceil_div(c, VL);
  for_blocks(parallel, n * vectors, [&](int64_t b, int) {
    const int64_t image = b / vectors, first = b % vectors * VL;
    block_pixels((int)min_of<int64_t>(VL, c - first), hw, hw, x + (image * c + first) * hw,
                 blocked + b * hw * VL);
  });
}

void from_blocked(int64_t n, int64_t c, int64_t hw, const float* blocked, float* y,
                  const Parallel& parallel) {
  const int64_t vectors = ceil_div(c, VL);
  if (hw == 1) {
    for (int64_t image = 0; image < n; image++)
      copy(blocked + image * vectors * VL, c, y + image * c);
    return;
  }
  for_blocks(parallel, n * vectors, [&](int64_t b, int) {
    const int64_t image = b / vectors, first = b % vectors * VL;
    transpose(hw, min_of<int64_t>(VL, c - first), blocked + b * hw * VL, VL,
              y + (image * c + first) * hw, hw);
  });
}

// ---- filters -----------------------------------------------------------------

int64_t direct_packed_bytes(const ConvShape& s) {
  const DirectLayout layout(s);
  return s.group * layout.k_vectors * VL * layout.sizes.reduction * sizeof(float);
}

void direct_pack(const ConvShape& s, const float* weights, float* packed,
                 const Parallel& parallel) {
  const DirectLayout layout(s);
  const ConvSizes& z = layout.sizes;
  for_blocks(parallel, s.group * layout.k_vectors, [&](int64_t b, int) {
    const int64_t group = b / layout.k_vectors, vector = b % layout.k_vectors;
    const int64_t first = vector / TILE_VECTORS * TILE_VECTORS;
    const int64_t row = layout.vectors_in_pair(first) * VL;
    float* out = layout.pair(packed, group, first) + (vector - first) * VL;
    const int lanes = (int)min_of<int64_t>(VL, z.group_k - vector * VL);
    const float* from = weights + (group * z.group_k + vector * VL) * z.reduction;
    for (int64_t i = 0; i < z.reduction; i += VL) {
      const int width = (int)min_of<int64_t>(VL, z.reduction - i);
      vf block[VL];
      load_block(from + i, z.reduction, lanes, width, block);
      transpose(block);
      for (int l = 0; l < width; l++) store(out + layout.step_of(i + l) * row, block[l]);
    }
  });
}

// ---- forward -----------------------------------------------------------------

namespace {

// The input rows of a strip, as tiles read them. In blocked form a stride over columns is taken
// out: column x of the padded image is pixel x / stride of part x % stride of its row; and of rows
// and parts only those are kept that the window looks at.
struct Strip {
  int64_t rows, row_step;      // kept rows of the padded image, and their distance in it
  int64_t parts, part_width;   // of a row, in pixels
  int64_t column_step;         // between neighbouring pixels of a part
  int64_t stride_h, stride_w;  // from output to output, in kept rows and pixels
  FORCE_INLINE Strip(const DirectLayout& layout, int64_t output_rows) {
    const ConvShape& s = layout.s;
    const ConvSizes& z = layout.sizes;
    const InputRows in(s, 0, output_rows);
    const bool whole = layout.plain || (s.stride_h == 1 && s.stride_w == 1);
    const bool skips = !whole && s.kh == 1;
    row_step = skips ? s.stride_h : 1;
    rows = skips ? output_rows : in.rows;
    stride_h = skips ? 1 : s.stride_h;
    column_step = whole ? 1 : s.stride_w;
    stride_w = whole ? s.stride_w : 1;
    parts = min_of(column_step, z.reach_w);
    part_width = ceil_div(in.width, column_step);
  }
  FORCE_INLINE int64_t width() const { return parts * part_width; }
  FORCE_INLINE int64_t place(int64_t column) const {
    return column % column_step * part_width + column / column_step;
  }
};

// A block of work is a strip of output rows of one image for a range of output channels. It brings
// its input rows into form itself, so that blocks are independent and stay in the cache.
struct Plan {
  DirectLayout layout;
  int64_t rows, strips;    // output rows per strip
  int64_t vectors, parts;  // vectors of output channels per block (all groups counted through)
  int64_t input_size;      // floats of a strip's input
  int64_t shared_bytes, lane_bytes;
  FORCE_INLINE int64_t blocks() const { return layout.s.n * strips * parts; }
};

FORCE_INLINE Plan plan_for(const ConvShape& s, int threads) {
  Plan p = {DirectLayout(s), s.oh(), 1, 0, 1, 0, 0, 0};
  const ConvSizes& z = p.layout.sizes;
  const int64_t planes = s.group * p.layout.c_blocks, all = s.group * p.layout.k_vectors;
  p.vectors = all;
  const auto input = [&] {
    const Strip strip(p.layout, p.rows);
    return planes * strip.rows * strip.width() * p.layout.unit;
  };
  const auto output = [&] { return p.vectors * VL * p.rows * z.ow; };
  // Filters that do not fit into the cache beside a strip's input are read again for each strip; a
  // pair that does not fit at all is read again for each tile, and more strips gain nothing.
  const int64_t filters = all * VL * z.reduction, pair = TILE_VECTORS * VL * z.reduction;
  const bool many = filters > 128 * 1024;
  const int64_t room = pair < 280 * 1024 ? 280 * 1024 - pair : 1024 * 1024;
  while (p.rows > 1 && (many ? input() > room : input() + output() > 128 * 1024)) {
    p.rows = ceil_div(p.rows, 2);
  }
  // Enough blocks for the threads; what an output is does not depend on its block. Cutting rows
  // reads the filters again, cutting channels the input: the larger one is cut.
  const int64_t wanted = threads > 1 ? 4 * threads : 1;
  const int64_t work = s.n * s.k * z.reduction * z.pixels;
  while (s.n * ceil_div(z.oh, p.rows) * ceil_div(all, p.vectors) < wanted && work > 1000000) {
    const bool long_enough = p.rows > 1 && p.rows * z.ow >= 4 * TILE_ROWS;
    const bool deep_enough = p.vectors > 2 * TILE_VECTORS;
    if (!long_enough && !deep_enough) break;
    if (deep_enough && (!long_enough || p.vectors * VL * z.reduction > input())) {
      p.vectors = round_up(ceil_div(p.vectors, 2), TILE_VECTORS);
    } else {
      p.rows = ceil_div(p.rows, 2);
    }
  }
  // A pair of vectors never belongs to two groups, nor to two blocks.
  if (s.group > 1 && p.layout.k_vectors % TILE_VECTORS) p.vectors = all;
  p.strips = ceil_div(z.oh, p.rows);
  p.rows = ceil_div(z.oh, p.strips);
  p.parts = ceil_div(all, p.vectors);
  p.input_size = input();
  Slices shared(nullptr), lane(nullptr);
  shared.take<Run>(p.layout.run_count());
  shared.take(all * VL);  // bias
  p.shared_bytes = shared.bytes();
  lane.take(p.input_size);
  lane.take(output());
  p.lane_bytes = lane.bytes();
  return p;
}

}  // namespace

int64_t direct_forward_scratch(const ConvShape& s, int threads) {
  const Plan plan = plan_for(s, threads);
  return plan.shared_bytes + lane_count(threads, plan.blocks()) * plan.lane_bytes;
}

namespace {

// Where one strip finds its operands, all in blocked layout but for the input of layout.plain.
struct StripPointers {
  const Run* runs;
  const float* x;
  int64_t plane;  // floats between planes of x
  const float* packed;
  const float *bias, *add;
  float* out;
  int64_t out_plane;  // floats between vectors of out and of add
};

}  // namespace

static void fill_runs(const DirectLayout& layout, const Strip& strip, int64_t plane, Run* runs) {
  const ConvShape& s = layout.s;
  for (int64_t c = 0; c < layout.c_blocks; c++) {
    for (int64_t r = 0; r < s.kh; r++) {
      const int64_t row = c * plane + r * s.dilation_h * strip.width() * layout.unit;
      if (layout.plain) {
        *runs++ = {(ptrdiff_t)row, (ptrdiff_t)s.kw};
        continue;
      }
      for (int64_t q = 0; q < s.kw; q++) {
        *runs++ = {(ptrdiff_t)(row + strip.place(q * s.dilation_w) * VL),
                   (ptrdiff_t)layout.channels_in(c)};
      }
    }
  }
}

// Brings the rows that start where `in` does into the form of the strip.
static void load_strip(const DirectLayout& layout, const Strip& strip, const InputRows& in,
                       bool x_is_blocked, const float* x, float* to) {
  const ConvShape& s = layout.s;
  if (strip.row_step == 1 && strip.column_step == 1) {
    return load_rows(layout, in, x_is_blocked, x, to);
  }
  for (int64_t c = 0; c < s.c; c += VL) {
    for (int64_t i = 0; i < strip.rows; i++) {
      const int64_t y = in.top + i * strip.row_step;
      const bool inside = y >= 0 && y < s.h;
      for (int64_t part = 0; part < strip.parts; part++) {
        for (int64_t j = 0; j < strip.part_width; j++, to += VL) {
          const int64_t column = j * strip.column_step + part - s.pad_l;
          const bool there = inside && column >= 0 && column < s.w;
          if (!there) {
            store(to, vf{});
          } else if (x_is_blocked) {
            store(to, load(x + (c * s.h + y * VL) * s.w + column * VL));
          } else {
            block_pixels((int)min_of<int64_t>(VL, s.c - c), s.h * s.w, 1,
                         x + (c * s.h + y) * s.w + column, to);
          }
        }
      }
    }
  }
}

// `rows` output rows of vectors [first, last).
static void convolve(const Plan& plan, const Strip& strip, const StripPointers& p,
                     const Bounds& bounds, int64_t rows, int64_t first, int64_t last) {
  const DirectLayout& layout = plan.layout;
  const ConvShape& s = layout.s;
  const int64_t unit = layout.unit, ow = layout.sizes.ow;
  // Without a window, all rows are one; two narrow ones share a tile.
  const int64_t line_step = strip.stride_h * strip.width();  // in pixels
  const bool flat = strip.stride_w == 1 && line_step == ow;
  const Spacing spacing = strip.stride_w != 1 ? Spacing::kAny
                          : layout.plain      ? Spacing::kOne
                                              : Spacing::kVector;
  const bool narrow = !flat && spacing == Spacing::kVector && 2 * ow <= TILE_ROWS;
  const int64_t lines = flat ? 1 : rows, together = narrow ? 2 : 1;
  const RowTiles tiles(flat ? rows * ow : ow);
  TileShape shape;
  shape.runs = p.runs;
  shape.run_count = layout.run_count();
  shape.a_pixel = (narrow ? line_step : strip.stride_w) * unit;
  shape.a_step = layout.plain ? s.dilation_w : 1;
  shape.out_row = VL;
  shape.out_vector = p.out_plane;
  shape.bounds = bounds;
  shape.scattered = layout.sizes.taps == 1;
  const int64_t filter = VL * layout.sizes.reduction;
  const int64_t tiles_in_all = ceil_div(lines, together) * tiles.tiles;
  const Ahead ahead(s.group * layout.k_vectors * filter, TILE_VECTORS * filter, tiles_in_all,
                    shape);
  for (int64_t v = first; v < last;) {
    const int64_t group = v / layout.k_vectors, vector = v % layout.k_vectors;
    const int vectors = layout.vectors_in_pair(vector);
    shape.w_step = vectors * VL;
    const float* filters = layout.pair((float*)p.packed, group, vector);
    const float* from = p.x + group * layout.c_blocks * p.plane;
    int64_t number = 0;
    for (int64_t line = 0; line < lines; line += together) {
      const bool two = line + 1 < lines && narrow;
      for (int64_t t = 0; t < tiles.tiles; t++) {
        const int64_t pixel = tiles.begin(t);
        const int height = tiles.height(t);
        const int64_t place = (v - first) * p.out_plane + (line * ow + pixel) * VL;
        TilePointers at = {from + (line * line_step + pixel * strip.stride_w) * unit, filters,
                           p.out + place};
        if (p.bias) at.bias_vector = p.bias + v * VL;
        if (p.add) at.add = p.add + place;
        at.ahead = ahead.at(filters + vectors * filter, number++);
        tile_for(two ? Spacing::kTwoRows : spacing, two ? 2 * height : height, vectors)(shape, at);
      }
    }
    v += vectors;
  }
}

void direct_forward(const ConvForward& f, const float* x, const float* packed, float* y,
                    void* scratch, const Parallel& parallel) {
  const ConvShape& s = f.shape;
  const Plan plan = plan_for(s, parallel.threads);
  const DirectLayout& layout = plan.layout;
  const ConvSizes& z = layout.sizes;
  const int64_t all = s.group * layout.k_vectors, unit = layout.unit;
  const bool x_blocked = f.x_layout == Layout::kBlocked, y_blocked = f.y_layout == Layout::kBlocked;
  // An input that already has the right form is read where it is.
  const Strip strip(layout, plan.rows);
  const bool in_place =
      !z.padded && strip.row_step == 1 && strip.column_step == 1 && (x_blocked || layout.plain);
  const int64_t plane = (in_place ? s.h : strip.rows) * strip.width() * unit;
  const int64_t image_size = round_up(s.c, x_blocked ? VL : 1) * s.h * s.w;

  Slices shared(scratch);
  Run* runs = shared.take<Run>(layout.run_count());
  float* full_bias = shared.take(all * VL);
  fill_runs(layout, strip, plane, runs);
  if (f.bias) {
    __builtin_memset(full_bias, 0, all * VL * sizeof(float));
    copy(f.bias, s.k, full_bias);
  }
  for_blocks(parallel, plan.blocks(), [&](int64_t block, int lane) {
    const int64_t part = block % plan.parts, rest = block / plan.parts;
    const int64_t image = rest / plan.strips, top = rest % plan.strips * plan.rows;
    const int64_t rows = min_of(plan.rows, z.oh - top);
    const int64_t first = part * plan.vectors, last = min_of(first + plan.vectors, all);
    Slices slices((char*)scratch + plan.shared_bytes + lane * plan.lane_bytes);
    float* loaded = slices.take(plan.input_size);
    float* strip_out = slices.take(plan.vectors * VL * plan.rows * z.ow);

    StripPointers p = {
        runs,      x + image * image_size, plane, packed, f.bias ? full_bias : nullptr, nullptr,
        strip_out, rows * z.ow * VL};
    if (in_place) {
      p.x += top * s.stride_h * s.w * unit;
    } else {
      // Always as many rows as the first strip has: planes keep their distance.
      load_strip(layout, strip, InputRows(s, top, plan.rows), x_blocked, p.x, loaded);
      p.x = loaded;
    }
    if (y_blocked) {
      const int64_t place = ((image * all + first) * z.pixels + top * z.ow) * VL;
      p.out = y + place;
      p.out_plane = z.pixels * VL;
      if (f.add) p.add = f.add + place;
      return convolve(plan, strip, p, f.bounds, rows, first, last);
    }
    const int64_t corner = image * s.k * z.pixels + top * z.ow;
    const auto channels = [&](int64_t v) { return min_of<int64_t>(VL, s.k - v * VL); };
    if (f.add) {
      p.add = strip_out;
      for (int64_t v = first; v < last; v++) {
        block_pixels((int)channels(v), z.pixels, rows * z.ow, f.add + corner + v * VL * z.pixels,
                     strip_out + (v - first) * p.out_plane);
      }
    }
    convolve(plan, strip, p, f.bounds, rows, first, last);
    for (int64_t v = first; v < last; v++) {
      transpose(rows * z.ow, channels(v), strip_out + (v - first) * p.out_plane, VL,
                y + corner + v * VL * z.pixels, z.pixels);
    }
  });
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
