// The kernel library: arithmetic on plain pointers and shapes, compiled once per instruction set.
//
// A kernel never allocates, throws, prints or starts a thread. What it needs is handed to it:
//   scratch   asked for with the matching `..._scratch_bytes`, aligned to kAlignment; its content
//             before and after the call means nothing; null is fine when the answer was 0
//   packed    weights in the order a kernel reads them, made once with `..._pack`
//   parallel  how to run independent blocks of work on somebody else's threads
// Work is cut into blocks by shape alone and every sum has a fixed order, so results are the same
// bit for bit whatever the number of threads. Different instruction sets may round differently
// (random numbers excepted). Arrays may be unaligned; outputs must not overlap inputs unless the
// kernel says "in place".
#pragma once

#include <cstddef>
#include <cstdint>

// Inline code here is also compiled with the flags of the widest instruction set: a copy of it that
// the linker might keep for everybody must never exist, hence always_inline.
#define CAFFE2_KERNELS_INLINE inline __attribute__((always_inline))

namespace caffe2::kernels {

constexpr std::size_t kAlignment = 64;

enum class Isa : int { kGeneric, kSse4, kAvx2, kAvx512, kNeon, kWasm };
constexpr Isa kAllIsas[] = {Isa::kGeneric, Isa::kSse4, Isa::kAvx2,
                            Isa::kAvx512,  Isa::kNeon, Isa::kWasm};

// How kernels split work. `run` calls task(context, block) once for every block in [0, blocks), on
// up to `threads` threads in any order, and returns when all are done. The default runs in the
// calling thread. Kernels never pass more than `threads` blocks when blocks own scratch.
struct Parallel {
  int threads = 1;
  void* pool = nullptr;
  void (*run)(void* pool, int blocks, void (*task)(void* context, int block),
              void* context) = nullptr;
};

// What results are cut off at. Relu is {0}; a NaN stays.
struct Bounds {
  float low = -__builtin_inff(), high = __builtin_inff();
};

// C[m,n] = cut(alpha * op(A)[m,k] * op(B)[k,n] + beta * C + bias), all row-major.
// op(A) is A[m,k], or the transpose of A[k,m] when trans_a; likewise B. With beta = 0, C is not
// read.
struct Gemm {
  bool trans_a = false, trans_b = false;
  int64_t m = 0, n = 0, k = 0;
  int64_t lda = 0, ldb = 0, ldc = 0;  // distance between rows as stored
  float alpha = 1, beta = 0;
  const float* bias = nullptr;  // one value per column of C, or null
  Bounds bounds;
  // The order in which a vector product reads its matrix, which no result depends on: who turns it
  // round each time finds first what is still in the cache.
  bool backwards = false;
};

// 2-D convolution, NCHW. Weights are [k][c / group][kh][kw]. Positive sizes, c and k divisible by
// group, and a window that fits into the padded input are the caller's duty.
struct ConvShape {
  int64_t n = 1, c = 1, h = 1, w = 1;  // input
  int64_t k = 1, kh = 1, kw = 1;       // output channels, window
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_t = 0, pad_l = 0, pad_b = 0, pad_r = 0;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t group = 1;

  CAFFE2_KERNELS_INLINE int64_t oh() const {
    return (h + pad_t + pad_b - dilation_h * (kh - 1) - 1) / stride_h + 1;
  }
  CAFFE2_KERNELS_INLINE int64_t ow() const {
    return (w + pad_l + pad_r - dilation_w * (kw - 1) - 1) / stride_w + 1;
  }
};

// kDirect       a sum over window and channels, nothing gathered (for few channels, 1x1 and
// strides) kIm2col       gathered columns times a matrix: every shape, plain layout alone
// kDepthwise    one filter per channel
// kWinograd2/4  minimal filtering: F(2x2, 3x3), F(2x2, 5x5) and F(4x4, 3x3)
//               (Lavin and Gray, 2015, arXiv 1509.09308)
enum class ConvAlgorithm : int { kDirect, kIm2col, kDepthwise, kWinograd2, kWinograd4 };
enum class ConvPass : int { kForward, kBackwardData, kBackwardWeights };

// How activations lie in memory: plain [n][c][h * w], or blocked
// [n][ceil(c / v)][h * w][v], v = vector_width, missing channels zero.
enum class Layout : int { kPlain, kBlocked };

// A forward convolution: y = cut(x * weights + bias + add).
struct ConvForward {
  ConvShape shape;
  ConvAlgorithm algorithm = ConvAlgorithm::kIm2col;
  Layout x_layout = Layout::kPlain, y_layout = Layout::kPlain;
  const float* bias = nullptr;  // k values, or null
  const float* add = nullptr;   // shaped and laid out as y, or null; may be y itself
  Bounds bounds;
};

// A pointwise convolution, a depthwise one of its result and, if `project` has weights, a pointwise
// one of that, as in an inverted residual (Sandler et al., 2018, arXiv 1801.04381):
//   y = project(depthwise(expand(x))) + add, each layer followed by its bias and bounds
// What is between the layers stays in the cache. x, y and add are blocked. Pointwise convolutions
// have a window of 1x1, stride 1, no pads and one group; `depthwise` has as many groups as
// channels. A sum over channels is the same with any number of threads.
struct ExpandDepthwise {
  struct Layer {
    ConvShape shape;
    const float* weights = nullptr;  // packed with kDirect, those of `depthwise` with kDepthwise
    const float* bias = nullptr;     // a value per output channel, or null
    Bounds bounds;
  };
  Layer expand, depthwise, project;
  const float* add = nullptr;  // shaped as y, or null; may be y itself; only with `project`
};

// 2-D pooling over `planes` = n * c maps, or n * ceil(c / v) blocked ones of v channels each. The
// output size is the caller's (rounding modes differ); windows are clipped to the input. Every
// window must touch at least one input element.
struct PoolShape {
  int64_t planes = 1, h = 1, w = 1, oh = 1, ow = 1;
  int64_t kh = 1, kw = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_t = 0, pad_l = 0, pad_b = 0, pad_r = 0;
  int64_t dilation_h = 1, dilation_w = 1;
  Layout layout = Layout::kPlain;  // of x and y; gradients are plain
};

// Data with values per channel: x[outer][channels][inner]. NCHW has inner = h * w; NHWC has
// outer = n * h * w and inner = 1.
struct ChannelShape {
  int64_t outer = 1, channels = 1, inner = 1;
};

enum class Type : int { kFloat, kInt32, kInt64, kUint8, kBool, kDouble };

// y = f(x) with the parameters alpha and beta, and what the gradient is computed from: x or y.
enum class Unary : int {
  kSquare,
  kSqrt,
  kRsqrt,       // y
  kReciprocal,  // y
  kFloor,
  kCeil,
  kAbs,              // x
  kErf,              // x
  kClip,             // y: min(max(x, alpha), beta)
  kLeakyRelu,        // y: alpha * x where x < 0
  kThresholdedRelu,  // y: x where x > alpha, else 0
  kHardSigmoid,      // y: alpha * x + beta, in [0, 1]
  kElu,              // y: alpha * (e^x - 1) where x < 0
  kSelu,             // y: beta * elu(x)
  kSoftplus,         // y: log(1 + e^x)
  kSoftsign,         // x: x / (1 + |x|)
  kSwish,            // x: x / (1 + e^-x)
  kMish,             // x: x * tanh(log(1 + e^x))
  kGelu,             // x: x * (1 + erf(x / sqrt(2))) / 2
  kFastGelu          // x: the same with a tanh in place of erf
};

enum class Binary : int {
  kAdd,
  kSub,
  kMul,
  kDiv,  // integers: toward zero; no divisor may be 0
  kMax,  // floats; a NaN where one of the two is
  kMin,
  kAnd,
  kOr,
  kXor,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual
};

// Two operands seen as one shape: dimensions (at least one, the outermost first) and how far apart
// neighbours along each lie in a and b. 0: the operand is repeated; the last distances are 0 or 1.
struct Broadcast {
  static constexpr int kMaxDims = 16;
  int rank = 1;
  int64_t dims[kMaxDims] = {1};
  int64_t a[kMaxDims] = {1}, b[kMaxDims] = {1};
};

enum class Reduction : int { kSum, kSumAbs, kSumSquares, kMax, kMin };

// A stream of random numbers (Philox4x32-10). Element i of a fill depends only on (key, stream,
// offset + i), so any fill can be split or repeated.
struct RandomState {
  uint64_t key = 0;     // the seed
  uint64_t stream = 0;  // upper half of the counter: operator, run
  uint64_t offset = 0;  // elements already drawn from the stream
};

// One step of `rows` sequences with n units each. Those with time >= lengths[row] are over: their
// states stay, or become 0 (drop). lengths may be null.
struct UnitStep {
  int64_t rows, n;
  const int32_t* lengths;
  int32_t time;
  bool drop;
};

// How optimizers change n elements: inputs -> outputs, and the constants. The last input is the
// gradient g. An output may be the input that it replaces, and null when nobody wants it.
enum class UpdateRule : int {
  kAdam,          // w m v g -> w m v step; lr beta1 beta2 epsilon correction
  kAdamWarmUp,    // the same, but the step is not divided by the root of v
  kDecayAdagrad,  // w m v g -> w m v; lr beta1 epsilon correction weight_decay
  kAdagrad,       // w h g -> w h rate step; lr epsilon decay weight_decay
  kRmsProp,       // v m g -> v m step; lr decay momentum epsilon
  kAdadelta,      // w v d g -> w v d; lr decay epsilon
};
struct Update {
  UpdateRule rule;
  float constants[5] = {};
  const float* in[4] = {};
  float* out[4] = {};
};

// All kernels of one instruction set. "m x n" arrays are row-major and dense.
struct Table {
  Isa isa;
  int vector_width;  // floats per vector: the channel block of blocked layouts

  // ---- matrix product -------------------------------------------------------------------------
  int64_t (*gemm_scratch_bytes)(const Gemm& g, int threads);
  void (*gemm)(const Gemm& g, const float* a, const float* b, float* c, void* scratch,
               const Parallel& parallel);
  // The same with op(B) packed beforehand (constant weights); g.ldb is not used by gemm_packed.
  int64_t (*gemm_packed_bytes)(int64_t n, int64_t k);
  void (*gemm_pack)(const Gemm& g, const float* b, float* packed, const Parallel& parallel);
  void (*gemm_packed)(const Gemm& g, const float* a, const float* packed, float* c, void* scratch,
                      const Parallel& parallel);

  // ---- convolution ----------------------------------------------------------------------------
  // Which algorithm can do what: conv_choice.cc. kIm2col does every shape and pass.
  bool (*conv_supports)(const ConvShape& s, ConvPass pass, ConvAlgorithm algorithm);
  // The fastest, by fixed rules. `layout` is that of the activations around the convolution:
  // kBlocked when they may be blocked, kPlain when x and y are plain for certain.
  ConvAlgorithm (*conv_algorithm)(const ConvShape& s, ConvPass pass, Layout layout);
  // The layouts in which forward is fastest; kPlain is always taken, kBlocked only when it is the
  // answer here.
  Layout (*conv_x_layout)(const ConvShape& s, ConvAlgorithm algorithm);
  Layout (*conv_y_layout)(const ConvShape& s, ConvAlgorithm algorithm);
  // Enough for any layouts.
  int64_t (*conv_scratch_bytes)(const ConvShape& s, ConvPass pass, ConvAlgorithm algorithm,
                                int threads);
  // Packed weights belong to (shape, algorithm); n, h, w and pads may change, and so may layouts.
  int64_t (*conv_packed_bytes)(const ConvShape& s, ConvAlgorithm algorithm);
  void (*conv_pack)(const ConvShape& s, ConvAlgorithm algorithm, const float* weights,
                    float* packed, const Parallel& parallel);
  void (*conv_forward)(const ConvForward& f, const float* x, const float* packed, float* y,
                       void* scratch, const Parallel& parallel);
  int64_t (*expand_depthwise_scratch_bytes)(const ExpandDepthwise& f, int threads);
  void (*expand_depthwise)(const ExpandDepthwise& f, const float* x, float* y, void* scratch,
                           const Parallel& parallel);
  void (*conv_backward_data)(const ConvShape& s, ConvAlgorithm algorithm, const float* dy,
                             const float* weights, float* dx, void* scratch,
                             const Parallel& parallel);
  void (*conv_backward_weights)(const ConvShape& s, ConvAlgorithm algorithm, const float* x,
                                const float* dy, float* dw, void* scratch,
                                const Parallel& parallel);
  void (*conv_backward_bias)(const ConvShape& s, const float* dy, float* db,
                             const Parallel& parallel);
  // Between the layouts.
  int64_t (*blocked_bytes)(int64_t n, int64_t c, int64_t hw);
  void (*to_blocked)(int64_t n, int64_t c, int64_t hw, const float* x, float* blocked,
                     const Parallel& parallel);
  void (*from_blocked)(int64_t n, int64_t c, int64_t hw, const float* blocked, float* y,
                       const Parallel& parallel);

  // ---- pooling --------------------------------------------------------------------------------
  void (*max_pool)(const PoolShape& s, const float* x, float* y, const Parallel& parallel);
  void (*max_pool_gradient)(const PoolShape& s, const float* x, const float* y, const float* dy,
                            float* dx, const Parallel& parallel);
  void (*average_pool)(const PoolShape& s, bool count_include_pad, const float* x, float* y,
                       const Parallel& parallel);
  void (*average_pool_gradient)(const PoolShape& s, bool count_include_pad, const float* dy,
                                float* dx, const Parallel& parallel);

  // ---- element by element (all may run in place) ------------------------------------------------
  void (*relu)(int64_t n, const float* x, float* y, const Parallel& parallel);
  void (*relu_gradient)(int64_t n, const float* y, const float* dy, float* dx,
                        const Parallel& parallel);  // dx = dy where y > 0, else 0
  void (*exp)(int64_t n, const float* x, float* y, const Parallel& parallel);
  void (*log)(int64_t n, const float* x, float* y, const Parallel& parallel);
  void (*tanh)(int64_t n, const float* x, float* y, const Parallel& parallel);
  void (*sigmoid)(int64_t n, const float* x, float* y, const Parallel& parallel);
  void (*tanh_gradient)(int64_t n, const float* y, const float* dy, float* dx,
                        const Parallel& parallel);  // dx = dy * (1 - y^2)
  void (*sigmoid_gradient)(int64_t n, const float* y, const float* dy, float* dx,
                           const Parallel& parallel);  // dx = dy * y * (1 - y)
  void (*unary)(Unary f, float alpha, float beta, int64_t n, const float* x, float* y,
                const Parallel& parallel);
  // dx = dy * f'; v is x or y, as Unary says. Those without that word have none.
  void (*unary_gradient)(Unary f, float alpha, float beta, int64_t n, const float* v,
                         const float* dy, float* dx, const Parallel& parallel);
  void (*fill)(int64_t n, float value, float* y, const Parallel& parallel);
  void (*scale)(int64_t n, float alpha, const float* x, float* y, const Parallel& parallel);
  // y = f(a, b), of the same type or, from comparisons, bool. In place on an operand that is not
  // repeated. Arithmetic: floats and integers (which wrap around); bits: integers and bool.
  bool (*binary_supports)(Binary f, Type type);
  void (*binary)(Binary f, Type type, const Broadcast& shape, const void* a, const void* b, void* y,
                 const Parallel& parallel);
  void (*axpby)(int64_t n, float alpha, const float* x, float beta, float* y,
                const Parallel& parallel);  // y = alpha * x + beta * y
  // y = sum of weights[i] * inputs[i], in order; y may be any of the inputs. weights may be null
  // (a plain sum).
  void (*weighted_sum)(int64_t n, int count, const float* const* inputs, const float* weights,
                       float* y, const Parallel& parallel);
  // y[i][j] = x[i][j] + b[j]
  void (*add_row)(int64_t m, int64_t n, const float* x, const float* b, float* y,
                  const Parallel& parallel);
  // Plain:    step = momentum * buffer + lr * gradient.
  // Nesterov: as plain for the buffer, step = (1 + momentum) * new buffer - momentum * old buffer.
  // buffer and step are written; when parameter is not null, parameter -= step.
  void (*momentum_sgd)(int64_t n, float lr, float momentum, bool nesterov, const float* gradient,
                       float* buffer, float* step, float* parameter, const Parallel& parallel);
  // One step of an optimizer for n elements.
  void (*update)(const Update& u, int64_t n, const Parallel& parallel);
  // In place only between types of one size. To bool: x != 0. Integer to integer: modulo 2^bits.
  // Float to integer: toward zero; what does not fit becomes the nearest number that does, NaN 0.
  void (*cast)(Type from, Type to, int64_t n, const void* x, void* y, const Parallel& parallel);

  // ---- recurrent units: one step ----------------------------------------------------------------
  // gates [rows][4][n], before their functions: input, forget, output, candidate.
  //   c = sigmoid(forget + forget_bias) * c_prev + sigmoid(input) * tanh(candidate)
  //   h = sigmoid(output) * tanh(c)
  void (*lstm_unit)(const UnitStep& s, float forget_bias, const float* h_prev, const float* c_prev,
                    const float* gates, float* h, float* c, const Parallel& parallel);
  void (*lstm_unit_gradient)(const UnitStep& s, float forget_bias, const float* c_prev,
                             const float* gates, const float* c, const float* dh, const float* dc,
                             float* dh_prev, float* dc_prev, float* dgates,
                             const Parallel& parallel);
  // gates [rows][3][n]: reset (used by whoever makes the candidate), update, candidate.
  //   h = sigmoid(update) * h_prev + (1 - sigmoid(update)) * tanh(candidate)
  void (*gru_unit)(const UnitStep& s, const float* h_prev, const float* gates, float* h,
                   const Parallel& parallel);
  void (*gru_unit_gradient)(const UnitStep& s, const float* h_prev, const float* gates,
                            const float* dh, float* dh_prev, float* dgates,
                            const Parallel& parallel);

  // ---- rows -------------------------------------------------------------------------------------
  void (*softmax)(int64_t m, int64_t n, const float* x, float* y, const Parallel& parallel);
  void (*log_softmax)(int64_t m, int64_t n, const float* x, float* y, const Parallel& parallel);
  void (*softmax_gradient)(int64_t m, int64_t n, const float* y, const float* dy, float* dx,
                           const Parallel& parallel);
  // y[i] = -log(max(x[i][labels[i]], floor)); labels must lie in [0, n): see first_outside.
  void (*label_cross_entropy)(int64_t m, int64_t n, float floor, const float* x,
                              const int32_t* labels, float* y, const Parallel& parallel);
  void (*label_cross_entropy_gradient)(int64_t m, int64_t n, float floor, const float* x,
                                       const int32_t* labels, const float* dy, float* dx,
                                       const Parallel& parallel);
  // p = softmax(x); loss[i] = weights[i] * -log(p[i][labels[i]]), straight from x, so that it stays
  // finite. weights (m) may be null.
  void (*softmax_loss)(int64_t m, int64_t n, const float* x, const int32_t* labels,
                       const float* weights, float* p, float* loss, const Parallel& parallel);
  // dx[i] = scale * weights[i] * (p[i] - onehot(labels[i])); may run in place on p.
  void (*softmax_loss_gradient)(int64_t m, int64_t n, const float* p, const int32_t* labels,
                                const float* weights, float scale, float* dx,
                                const Parallel& parallel);
  double (*sum)(int64_t n, const float* x, const Parallel& parallel);
  double (*dot)(int64_t n, const float* x, const float* y, const Parallel& parallel);
  // y[o][i] = the reduction of x[o][0..n)[i]. Of no values a sum is 0, a maximum the lowest number,
  // a minimum the largest one. A NaN stays.
  void (*reduce)(Reduction r, int64_t outer, int64_t n, int64_t inner, const float* x, float* y,
                 const Parallel& parallel);
  // Index of the first largest element of each row; a NaN counts as largest, as in NumPy. n > 0.
  void (*argmax)(int64_t m, int64_t n, const float* x, int64_t* y, const Parallel& parallel);
  // Index of the first element outside [low, high), or -1.
  int64_t (*first_outside)(int64_t n, const int32_t* x, int32_t low, int32_t high);

  // ---- channels (arrays of one value per channel may be null where it says so: zeros) -----------
  void (*channel_sums)(const ChannelShape& s, const float* x, float* sums,
                       const Parallel& parallel);
  // sums = sum of (x - x_center) * (y - y_center); the centers may be null.
  void (*channel_products)(const ChannelShape& s, const float* x, const float* x_center,
                           const float* y, const float* y_center, float* sums,
                           const Parallel& parallel);
  // y = (x - center) * scale + bias; in place. center and bias may be null.
  void (*channel_affine)(const ChannelShape& s, const float* x, const float* center,
                         const float* scale, const float* bias, float* y, const Parallel& parallel);
  // z = a * x + b * (y - center) + c; in place on x or y. center and c may be null.
  void (*channel_combine)(const ChannelShape& s, const float* x, const float* a, const float* y,
                          const float* center, const float* b, const float* c, float* z,
                          const Parallel& parallel);

  // ---- random numbers: the same on every instruction set ----------------------------------------
  void (*uniform)(const RandomState& r, float low, float high, int64_t n, float* y,
                  const Parallel& parallel);  // [low, high)
  void (*normal)(const RandomState& r, float mean, float std, int64_t n, float* y,
                 const Parallel& parallel);
  void (*uniform_int)(const RandomState& r, int32_t low, int32_t high, int64_t n, int32_t* y,
                      const Parallel& parallel);  // [low, high], both included
};

// Whether this program holds kernels for `isa` and this processor can run them.
bool supported(Isa isa);
// The widest supported one. x86-64 processors need SSE4.2 (x86-64-v2).
Isa best_isa();
// The kernels of `isa`, or null when it is not supported.
const Table* table(Isa isa);
// "generic", "sse4", "avx2", "avx512", "neon", "wasm".
const char* isa_name(Isa isa);
// Sets *isa and returns true when `name` is one of the names above.
bool isa_from_name(const char* name, Isa* isa);

}  // namespace caffe2::kernels
