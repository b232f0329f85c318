// Speed of the kernels on layers of LeNet and ResNet, one thread, beside the peak of the processor.
//
//   cmake -S . -B build/bench -DCAFFE2_PYTHON=OFF -DCAFFE2_BENCHMARKS=ON
//   cmake --build build/bench --target kernel_benchmark
//   build/bench/native/kernels/kernel_benchmark [isa...]    (all that are supported by default)
//
// Times are the least of many runs; GFLOP/s count the multiplications and additions of the
// definition. For convolutions both algorithms are shown, the chosen one marked with *.
#include "kernels/kernels.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
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
  explicit Bench(const Table& kernels) : kernels_(kernels), peak_(peak_gflops(kernels)) {
    std::printf("%s: peak %.1f GFLOP/s\n", isa_name(kernels.isa), peak_);
  }

  // Prints one line and returns the time in ms.
  double report(const std::string& name, double flops, const std::function<void()>& run) const {
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
    const Memory scratch = allocate(kernels_.gemm_scratch_bytes(g, 1));
    return report(name, 2.0 * m * n * k, [&] {
      kernels_.gemm(g, a.data(), b.data(), c.data(), scratch.get(), Parallel());
    });
  }

  // Forward (with bias and packing, as in training), gradients by weights and by data; the sum of
  // the chosen algorithms' times.
  double conv(const ConvShape& s, bool with_data_gradient) const {
    const Floats x = random(s.n * s.c * s.h * s.w), w = random(s.k * s.c / s.group * s.kh * s.kw);
    const Floats bias = random(s.k), dy = random(s.n * s.k * s.oh() * s.ow());
    Floats y(dy.size()), dx(x.size()), dw(w.size());
    const double flops = 2.0 * dy.size() * (s.c / s.group) * s.kh * s.kw;
    char layer[100];
    std::snprintf(layer, sizeof(layer), "%dx%d/%d %d->%d @%d n%d", int(s.kh), int(s.kw),
                  int(s.stride_h), int(s.c), int(s.k), int(s.h), int(s.n));
    double total = 0;
    for (ConvPass pass :
         {ConvPass::kForward, ConvPass::kBackwardWeights, ConvPass::kBackwardData}) {
      if (pass == ConvPass::kBackwardData && !with_data_gradient) continue;
      for (ConvAlgorithm algorithm : {ConvAlgorithm::kDirect, ConvAlgorithm::kIm2col}) {
        if (!kernels_.conv_supports(s, pass, algorithm)) continue;
        const bool chosen = kernels_.conv_algorithm(s, pass) == algorithm;
        const Memory scratch = allocate(kernels_.conv_scratch_bytes(s, pass, algorithm, 1));
        const Memory packed = allocate(kernels_.conv_packed_bytes(s, algorithm));
        const char* pass_name = pass == ConvPass::kForward           ? "forward"
                                : pass == ConvPass::kBackwardWeights ? "by weights"
                                                                     : "by data";
        const std::string name = std::string(layer) + " " + pass_name +
                                 (algorithm == ConvAlgorithm::kDirect ? " direct" : " im2col") +
                                 (chosen ? " *" : "");
        const double time = report(name, flops, [&] {
          const Parallel one;
          if (pass == ConvPass::kForward) {
            kernels_.conv_pack(s, algorithm, w.data(), static_cast<float*>(packed.get()), one);
            kernels_.conv_forward(s, algorithm, x.data(), static_cast<float*>(packed.get()),
                                  bias.data(), false, y.data(), scratch.get(), one);
          } else if (pass == ConvPass::kBackwardWeights) {
            kernels_.conv_backward_weights(s, algorithm, x.data(), dy.data(), dw.data(),
                                           scratch.get(), one);
          } else {
            kernels_.conv_backward_data(s, algorithm, dy.data(), w.data(), dx.data(), scratch.get(),
                                        one);
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
      kernels_.column_sums(batch, 500, out.data(), y.data(), one);
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
  Floats random(int64_t n) const {
    Floats values(n);
    kernels_.uniform({1, 2, 3}, -1, 1, n, values.data(), Parallel());
    return values;
  }

  const Table& kernels_;
  double peak_;
};

void run(const Table& kernels) {
  const Bench bench(kernels);
  constexpr int64_t batch = 64;
  double total = bench.conv(Bench::layer(batch, 1, 28, 20, 5, 1, 0), true);
  total += bench.pool(batch * 20, 24);
  total += bench.conv(Bench::layer(batch, 20, 12, 50, 5, 1, 0), true);
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
  bench.gemm("1 x 1000 x 2048, transposed", false, true, 1, 1000, 2048);
  bench.gemm("16 x 16 x 16", false, false, 16, 16, 16);
  for (int64_t n : {1, 8}) {
    bench.conv(Bench::layer(n, 3, 224, 64, 7, 2, 3), false);
    bench.conv(Bench::layer(n, 64, 56, 64, 3, 1, 1), true);
    bench.conv(Bench::layer(n, 128, 28, 128, 3, 1, 1), true);
    bench.conv(Bench::layer(n, 512, 7, 512, 3, 1, 1), true);
    bench.conv(Bench::layer(n, 64, 56, 256, 1, 1, 0), true);
    bench.conv(Bench::layer(n, 1024, 14, 256, 1, 1, 0), true);
    bench.conv(Bench::layer(n, 64, 56, 128, 3, 2, 1), true);
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; i++) {
    Isa isa;
    if (!isa_from_name(argv[i], &isa) || !supported(isa)) {
      std::fprintf(stderr, "no kernels for %s here\n", argv[i]);
      return 1;
    }
    run(*table(isa));
  }
  if (argc > 1) return 0;
  for (Isa isa : {Isa::kGeneric, Isa::kSse4, Isa::kAvx2, Isa::kAvx512, Isa::kNeon}) {
    if (supported(isa)) run(*table(isa));
  }
  return 0;
}
