// Speed of the kernels on layers of LeNet and ResNet, one thread, beside the peak of the processor.
//
//   cmake -S . -B build/bench -DCAFFE2_PYTHON=OFF -DCAFFE2_BENCHMARKS=ON
//   cmake --build build/bench --target kernel_benchmark
//   build/bench/native/kernels/kernel_benchmark [isa...] [--training] [--threads=2] [--only=1x1]
//
// Without an instruction set: all that are supported; --only: lines that begin so. Times are the
// least of many runs; GFLOP/s count the multiplications and additions of the definition, so that
// algorithms which save some can pass the peak. The chosen algorithms are marked with *.
#include "kernels/kernels.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace caffe2::kernels;

double seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

double least_time(const std::function<void()>& run) {
  run();
  double best = 1e9;
  const double begin = seconds();
  for (int i = 0; i < 5 || seconds() - begin < 0.15; i++) {
    const double start = seconds();
    run();
    const double time = seconds() - start;
    if (time < best) best = time;
  }
  return best;
}

// ---- peak --------------------------------------------------------------------

constexpr int kSteps = 200000;

// Twelve independent chains of multiply-adds: enough to fill every pipeline. They start
// differently, or the compiler would keep fewer.
template <class Vector>
CAFFE2_KERNELS_INLINE void multiply_add_chains() {
  volatile float start = 1;
  Vector acc[12], factor = Vector{} + 0.999f, term = Vector{} + 0.001f;
  for (int j = 0; j < 12; j++) acc[j] = Vector{} + start * j;
  for (int i = 0; i < kSteps; i++) {
#pragma GCC unroll 12
    for (int j = 0; j < 12; j++) acc[j] = acc[j] * factor + term;
  }
  for (int j = 1; j < 12; j++) acc[0] += acc[j];
  start = acc[0][0];
}

typedef float Four __attribute__((vector_size(16)));
typedef float Eight __attribute__((vector_size(32)));
typedef float Sixteen __attribute__((vector_size(64)));

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) void peak_sse4() { multiply_add_chains<Four>(); }
__attribute__((target("avx2,fma"))) void peak_avx2() { multiply_add_chains<Eight>(); }
__attribute__((target("avx512f"))) void peak_avx512() { multiply_add_chains<Sixteen>(); }
#else
void peak_plain() { multiply_add_chains<Four>(); }
#endif

double peak_gflops(const Table& kernels) {
#if defined(__x86_64__)
  void (*const loop)() = kernels.isa == Isa::kAvx512 ? peak_avx512
                         : kernels.isa == Isa::kAvx2 ? peak_avx2
                                                     : peak_sse4;
#else
  void (*const loop)() = peak_plain;
#endif
  return 2e-9 * 12 * kernels.vector_width * kSteps / least_time(loop);
}

// ---- layers ------------------------------------------------------------------

// Memory aligned as the engine's is.
struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Memory = std::unique_ptr<void, Free>;

Memory allocate(size_t bytes) {
  return Memory(std::aligned_alloc(kAlignment, (bytes / kAlignment + 1) * kAlignment));
}

class Floats {
 public:
  explicit Floats(size_t n) : size_(n), memory_(allocate(n * sizeof(float))) {
    std::fill_n(data(), n, 0.0f);
  }
  size_t size() const { return size_; }
  float* data() const { return static_cast<float*>(memory_.get()); }

 private:
  size_t size_;
  Memory memory_;
};

class Bench {
 public:
  Bench(const Table& kernels, int threads, const std::string& only)
      : kernels_(kernels),
        only_(only),
        threads_(threads_of(threads)),
        peak_(threads * peak_gflops(kernels)) {
    std::printf("%s: peak %.1f GFLOP/s on %d threads\n", isa_name(kernels.isa), peak_, threads);
  }

  // Prints one line and returns the time in ms.
  double report(const std::string& name, double flops, const std::function<void()>& run) const {
    if (name.rfind(only_, 0) != 0) return 0;
    const double time = least_time(run);
    std::printf("  %-52s %9.3f ms", name.c_str(), time * 1e3);
    if (flops > 0) {
      const double rate = flops / time * 1e-9;
      std::printf(" %7.1f GFLOP/s %4.0f%%", rate, 100 * rate / peak_);
    }
    std::printf("\n");
    return time * 1e3;
  }

  double gemm(const std::string& name, bool trans_a, bool trans_b, int64_t m, int64_t n,
              int64_t k) const {
    Gemm g;
    g.trans_a = trans_a;
    g.trans_b = trans_b;
    g.m = m;
    g.n = n;
    g.k = k;
    g.lda = trans_a ? m : k;
    g.ldb = trans_b ? k : n;
    g.ldc = n;
    const Floats a = random(m * k), b = random(n * k);
    Floats c(m * n);
    const Memory scratch = allocate(kernels_.gemm_scratch_bytes(g, threads_.threads));
    return report(name, 2.0 * m * n * k,
                  [&] { kernels_.gemm(g, a.data(), b.data(), c.data(), scratch.get(), threads_); });
  }

  // X[m, k] times constant weights W[n, k], as in FC: as they are and packed.
  void fully_connected(int64_t m, int64_t n, int64_t k) const {
    const std::string name =
        "FC " + std::to_string(k) + "->" + std::to_string(n) + " n" + std::to_string(m);
    gemm(name, false, true, m, n, k);
    Gemm g;
    g.trans_b = true;
    g.m = m, g.n = n, g.k = k;
    g.lda = k, g.ldb = k, g.ldc = n;
    const Floats x = random(m * k), w = random(n * k);
    Floats y(m * n), packed(kernels_.gemm_packed_bytes(n, k) / sizeof(float));
    kernels_.gemm_pack(g, w.data(), packed.data(), threads_);
    const Memory scratch = allocate(kernels_.gemm_scratch_bytes(g, threads_.threads));
    report(name + " packed", 2.0 * m * n * k, [&] {
      kernels_.gemm_packed(g, x.data(), packed.data(), y.data(), scratch.get(), threads_);
    });
  }

  // Forward as in inference: packed weights, bias and Relu, blocked where that is taken.
  void inference(const ConvShape& s) const {
    const Floats x = random(s.n * s.c * s.h * s.w), w = random(weight_count(s)), bias = random(s.k);
    Floats blocked(kernels_.blocked_bytes(s.n, s.c, s.h * s.w) / sizeof(float));
    Floats y(kernels_.blocked_bytes(s.n, s.k, s.oh() * s.ow()) / sizeof(float));
    kernels_.to_blocked(s.n, s.c, s.h * s.w, x.data(), blocked.data(), Parallel());
    const ConvAlgorithm chosen = kernels_.conv_algorithm(s, ConvPass::kForward, Layout::kBlocked);
    for (ConvAlgorithm algorithm : kAlgorithms) {
      if (!kernels_.conv_supports(s, ConvPass::kForward, algorithm)) continue;
      ConvForward f;
      f.shape = s;
      f.algorithm = algorithm;
      f.x_layout = kernels_.conv_x_layout(s, algorithm);
      f.y_layout = kernels_.conv_y_layout(s, algorithm);
      f.bias = bias.data();
      f.bounds = {0};
      Floats packed(kernels_.conv_packed_bytes(s, algorithm) / sizeof(float));
      kernels_.conv_pack(s, algorithm, w.data(), packed.data(), Parallel());
      const Memory scratch =
          allocate(kernels_.conv_scratch_bytes(s, ConvPass::kForward, algorithm, threads_.threads));
      const float* in = f.x_layout == Layout::kBlocked ? blocked.data() : x.data();
      report(describe(s) + name_of(algorithm) + (algorithm == chosen ? " *" : ""), flops(s), [&] {
        kernels_.conv_forward(f, in, packed.data(), y.data(), scratch.get(), threads_);
      });
    }
  }

  // Forward (with bias and packing, as in training), gradients by weights and by data; the sum of
  // the chosen algorithms' times.
  double training(const ConvShape& s, bool with_data_gradient) const {
    const Floats x = random(s.n * s.c * s.h * s.w), w = random(weight_count(s));
    const Floats bias = random(s.k), dy = random(s.n * s.k * s.oh() * s.ow());
    Floats y(dy.size()), dx(x.size()), dw(w.size());
    double total = 0;
    for (ConvPass pass :
         {ConvPass::kForward, ConvPass::kBackwardWeights, ConvPass::kBackwardData}) {
      if (pass == ConvPass::kBackwardData && !with_data_gradient) continue;
      for (ConvAlgorithm algorithm : kAlgorithms) {
        if (!kernels_.conv_supports(s, pass, algorithm)) continue;
        const bool chosen = kernels_.conv_algorithm(s, pass, Layout::kPlain) == algorithm;
        const Memory scratch =
            allocate(kernels_.conv_scratch_bytes(s, pass, algorithm, threads_.threads));
        Floats packed(kernels_.conv_packed_bytes(s, algorithm) / sizeof(float));
        ConvForward f;
        f.shape = s;
        f.algorithm = algorithm;
        f.bias = bias.data();
        const char* pass_name = pass == ConvPass::kForward           ? " forward"
                                : pass == ConvPass::kBackwardWeights ? " by weights"
                                                                     : " by data";
        const std::string name =
            describe(s) + pass_name + name_of(algorithm) + (chosen ? " *" : "");
        const double time = report(name, flops(s), [&] {
          if (pass == ConvPass::kForward) {
            kernels_.conv_pack(s, algorithm, w.data(), packed.data(), threads_);
            kernels_.conv_forward(f, x.data(), packed.data(), y.data(), scratch.get(), threads_);
          } else if (pass == ConvPass::kBackwardWeights) {
            kernels_.conv_backward_weights(s, algorithm, x.data(), dy.data(), dw.data(),
                                           scratch.get(), threads_);
          } else {
            kernels_.conv_backward_data(s, algorithm, dy.data(), w.data(), dx.data(), scratch.get(),
                                        threads_);
          }
        });
        if (chosen) total += time;
      }
    }
    return total;
  }

  double pool(int64_t planes, int64_t size) const {
    PoolShape s;
    s.planes = planes;
    s.h = s.w = size;
    s.oh = s.ow = size / 2;
    s.kh = s.kw = s.stride_h = s.stride_w = 2;
    const Floats x = random(planes * size * size), dy = random(planes * s.oh * s.ow);
    Floats y(dy.size()), dx(x.size());
    const std::string name = "max pooling 2x2 @" + std::to_string(size);
    return report(name + " forward", 0,
                  [&] { kernels_.max_pool(s, x.data(), y.data(), Parallel()); }) +
           report(name + " gradient", 0, [&] {
             kernels_.max_pool_gradient(s, x.data(), y.data(), dy.data(), dx.data(), Parallel());
           });
  }

  // Bias gradients, relu, softmax with loss, momentum update.
  double rest(int64_t batch) const {
    const int64_t parameters = 431080, hidden = batch * 500;
    const Floats x = random(parameters), dy = random(batch * 20 * 24 * 24);
    Floats y(parameters), step(parameters), m(parameters), out(parameters);
    const std::vector<int32_t> labels(batch, 3);
    const Parallel one;
    double total = 0;
    total += report("bias gradient 20 @24", 0, [&] {
      kernels_.conv_backward_bias(layer(batch, 1, 28, 20, 5, 1, 0), dy.data(), y.data(), one);
    });
    total += report("bias gradient 50 @8", 0, [&] {
      kernels_.conv_backward_bias(layer(batch, 20, 12, 50, 5, 1, 0), dy.data(), y.data(), one);
    });
    total += report("relu, its gradient, column sums", 0, [&] {
      kernels_.relu(hidden, x.data(), y.data(), one);
      kernels_.relu_gradient(hidden, y.data(), x.data(), out.data(), one);
      kernels_.reduce(Reduction::kSum, 1, batch, 500, out.data(), y.data(), one);
    });
    total += report("softmax with loss and gradient", 0, [&] {
      kernels_.softmax_loss(batch, 10, x.data(), labels.data(), nullptr, y.data(), out.data(), one);
      kernels_.softmax_loss_gradient(batch, 10, y.data(), labels.data(), nullptr, 1, out.data(),
                                     one);
    });
    total += report("momentum update of 431080 parameters", 0, [&] {
      kernels_.momentum_sgd(parameters, 0.01f, 0.9f, false, x.data(), m.data(), step.data(),
                            y.data(), one);
    });
    return total;
  }

  static ConvShape depthwise(int64_t c, int64_t size, int64_t window, int64_t stride) {
    ConvShape s = layer(1, c, size, c, window, stride, window / 2);
    s.group = c;
    return s;
  }

  static ConvShape layer(int64_t n, int64_t c, int64_t size, int64_t k, int64_t window,
                         int64_t stride, int64_t pad) {
    ConvShape s;
    s.n = n;
    s.c = c;
    s.h = s.w = size;
    s.k = k;
    s.kh = s.kw = window;
    s.stride_h = s.stride_w = stride;
    s.pad_t = s.pad_l = s.pad_b = s.pad_r = pad;
    return s;
  }

 private:
  static constexpr ConvAlgorithm kAlgorithms[] = {
      ConvAlgorithm::kDirect, ConvAlgorithm::kIm2col, ConvAlgorithm::kDepthwise,
      ConvAlgorithm::kWinograd2, ConvAlgorithm::kWinograd4};
  static const char* name_of(ConvAlgorithm algorithm) {
    constexpr const char* kNames[] = {" direct", " im2col", " depthwise", " F(2x2)", " F(4x4)"};
    return kNames[static_cast<int>(algorithm)];
  }

  static std::string describe(const ConvShape& s) {
    char layer[100];
    std::snprintf(layer, sizeof(layer), "%dx%d/%d %d->%d @%d n%d", int(s.kh), int(s.kw),
                  int(s.stride_h), int(s.c), int(s.k), int(s.h), int(s.n));
    return layer;
  }
  static int64_t weight_count(const ConvShape& s) { return s.k * (s.c / s.group) * s.kh * s.kw; }
  static double flops(const ConvShape& s) { return 2.0 * s.n * s.oh() * s.ow() * weight_count(s); }

  // One helper thread per further lane, which spins between calls: costs nothing to wake.
  static Parallel threads_of(int count) {
    Parallel p;
    if (count == 1) return p;
    p.threads = count;
    p.run = [](void*, int blocks, void (*task)(void*, int), void* context) {
      Crew& crew = Crew::of(blocks - 1);
      crew.run(task, context);
    };
    return p;
  }

  class Crew {
   public:
    static Crew& of(int helpers) {
      static Crew* const crew = new Crew(helpers);  // lives until the program ends
      return *crew;
    }
    void run(void (*task)(void*, int), void* context) {
      task_ = task;
      context_ = context;
      left_ = helpers_;
      round_++;
      task(context, 0);
      while (left_ > 0) {
      }
    }

   private:
    explicit Crew(int helpers) : helpers_(helpers) {
      for (int i = 1; i <= helpers; i++) {
        std::thread([this, i] {
          for (int seen = 0;;) {
            if (round_ == seen) continue;
            seen++;
            task_(context_, i);
            left_--;
          }
        }).detach();
      }
    }
    const int helpers_;
    void (*task_)(void*, int) = nullptr;
    void* context_ = nullptr;
    std::atomic<int> left_ = 0, round_ = 0;
  };

  Floats random(int64_t n) const {
    Floats values(n);
    kernels_.uniform({1, 2, 3}, -1, 1, n, values.data(), Parallel());
    return values;
  }

  const Table& kernels_;
  const std::string only_;
  const Parallel threads_;
  const double peak_;
};

// The kinds of layers that well-known nets spend their time in.
void inference(const Bench& bench) {
  bench.inference(Bench::layer(1, 3, 224, 64, 7, 2, 3));
  bench.inference(Bench::layer(1, 3, 224, 32, 3, 2, 1));
  for (const auto& [c, size] :
       {std::pair<int64_t, int64_t>(64, 56), {128, 28}, {256, 14}, {512, 7}}) {
    bench.inference(Bench::layer(1, c, size, c, 3, 1, 1));
  }
  bench.inference(Bench::layer(1, 64, 56, 128, 3, 2, 1));
  bench.inference(Bench::layer(1, 512, 14, 512, 3, 2, 1));
  bench.inference(Bench::layer(1, 64, 56, 256, 1, 1, 0));
  bench.inference(Bench::layer(1, 256, 56, 64, 1, 1, 0));
  bench.inference(Bench::layer(1, 256, 14, 1024, 1, 1, 0));
  bench.inference(Bench::layer(1, 1024, 14, 256, 1, 1, 0));
  bench.inference(Bench::layer(1, 512, 7, 2048, 1, 1, 0));
  bench.inference(Bench::layer(1, 2048, 7, 512, 1, 1, 0));
  bench.inference(Bench::layer(1, 16, 112, 96, 1, 1, 0));
  bench.inference(Bench::layer(1, 144, 56, 24, 1, 1, 0));
  bench.inference(Bench::layer(1, 960, 7, 160, 1, 1, 0));
  for (int64_t stride : {1, 2}) {
    bench.inference(Bench::depthwise(96, 112, 3, stride));
    bench.inference(Bench::depthwise(384, 14, 3, stride));
    bench.inference(Bench::depthwise(240, 14, 5, stride));
  }
  bench.inference(Bench::layer(1, 20, 12, 50, 5, 1, 0));
  bench.inference(Bench::layer(1, 32, 28, 32, 5, 1, 2));
  for (int64_t m : {1, 4, 128}) bench.fully_connected(m, 256, 784);
  bench.fully_connected(1, 1000, 2048);
  bench.fully_connected(1, 2048, 2048);
}

void training(const Bench& bench) {
  constexpr int64_t batch = 64;
  double total = bench.training(Bench::layer(batch, 1, 28, 20, 5, 1, 0), true);
  total += bench.pool(batch * 20, 24);
  total += bench.training(Bench::layer(batch, 20, 12, 50, 5, 1, 0), true);
  total += bench.pool(batch * 50, 8);
  for (const auto& [k, n] : {std::pair<int64_t, int64_t>(800, 500), {500, 10}}) {
    const std::string name = "FC " + std::to_string(k) + "->" + std::to_string(n) + " n64 ";
    total += bench.gemm(name + "forward", false, true, batch, n, k);
    total += bench.gemm(name + "by weights", true, false, n, k, batch);
    total += bench.gemm(name + "by data", false, false, batch, k, n);
  }
  total += bench.rest(batch);
  std::printf("  LeNet, a training step of %d images: %.2f ms\n", int(batch), total);

  bench.gemm("1024 x 1024 x 1024", false, false, 1024, 1024, 1024);
  bench.gemm("16 x 16 x 16", false, false, 16, 16, 16);
  constexpr int64_t n = 8;
  bench.training(Bench::layer(n, 3, 224, 64, 7, 2, 3), false);
  bench.training(Bench::layer(n, 64, 56, 64, 3, 1, 1), true);
  bench.training(Bench::layer(n, 128, 28, 128, 3, 1, 1), true);
  bench.training(Bench::layer(n, 512, 7, 512, 3, 1, 1), true);
  bench.training(Bench::layer(n, 64, 56, 256, 1, 1, 0), true);
  bench.training(Bench::layer(n, 1024, 14, 256, 1, 1, 0), true);
  bench.training(Bench::layer(n, 64, 56, 128, 3, 2, 1), true);
}

}  // namespace

int main(int argc, char** argv) {
  bool train = false;
  int threads = 1;
  std::string only;
  std::vector<Isa> isas;
  for (int i = 1; i < argc; i++) {
    Isa isa;
    if (std::strcmp(argv[i], "--training") == 0) {
      train = true;
    } else if (std::strncmp(argv[i], "--threads=", 10) == 0 && std::atoi(argv[i] + 10) > 0) {
      threads = std::atoi(argv[i] + 10);
    } else if (std::strncmp(argv[i], "--only=", 7) == 0) {
      only = argv[i] + 7;
    } else if (isa_from_name(argv[i], &isa) && supported(isa)) {
      isas.push_back(isa);
    } else {
      std::fprintf(stderr, "%s: neither an option nor an instruction set of this machine\n",
                   argv[i]);
      return 1;
    }
  }
  if (isas.empty()) {
    for (Isa isa : kAllIsas) {
      if (supported(isa)) isas.push_back(isa);
    }
  }
  for (Isa isa : isas) (train ? training : inference)(Bench(*table(isa), threads, only));
  return 0;
}
