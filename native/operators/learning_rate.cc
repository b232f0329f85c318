// LearningRate: the policies, in double precision.
#include <cmath>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "core/operator.h"
#include "core/registry.h"

namespace caffe2 {
namespace {

// From `start` at 0 to 1 at `end`, then 1.
double linear(double start, double i, double end) {
  return i >= end ? 1.0 : start + (1 - start) * i / end;
}

// base to top and back in 2 * step iterations; each cycle's height is `decay` times the last.
double cyclical(double i, double base, double top, double step, double decay) {
  const double cycle = std::floor(i / (2 * step));
  const double height = std::fmax(0.0, 1 - std::fabs(i / step - 2 * cycle - 1));
  return base + (top - base) * height * std::pow(decay, cycle);
}

// high to low along a cosine over `period`, then again, t_mult as long and shrink as high.
double cosine(double i, double low, double high, double period, double t_mult, double shrink) {
  const auto start = [&](double cycle) {
    return t_mult == 1 ? cycle * period : period * (std::pow(t_mult, cycle) - 1) / (t_mult - 1);
  };
  double cycle = std::floor(i / period);
  if (t_mult != 1) {
    cycle = std::trunc(std::log1p(i / period * (t_mult - 1)) / std::log(t_mult));
    // The logarithm may be off by one at the seam of two cycles.
    if (start(cycle + 1) <= i) cycle++;
    if (start(cycle) > i) cycle--;
  }
  const double place = (i - start(cycle)) / (period * std::pow(t_mult, cycle));
  const double height = low + (high - low) * (1 + std::cos(M_PI * place)) / 2;
  return std::pow(shrink, cycle) * height;
}

// One policy; the names of its arguments begin with `prefix`.
class Policy {
 public:
  Policy(const Arguments& args, std::string prefix)
      : args_(args),
        prefix_(std::move(prefix)),
        policy_(args.text(prefix_ + "policy")),
        base_(args.real("base_lr")) {
    require({"policy"});
    rate(0);  // says now what the policy lacks
  }

  double rate(int64_t iteration) const;

 private:
  bool has(const char* name) const { return args_.has(prefix_ + name); }
  double real(const char* name) const { return args_.real(prefix_ + name); }
  int64_t integer(const char* name) const { return args_.integer(prefix_ + name); }
  double whole(const char* name) const { return static_cast<double>(integer(name)); }

  void require(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      CAFFE2_ENFORCE(has(name), "argument '", prefix_, name, "' is missing; the policy ", policy_,
                     " needs it");
    }
  }

  double alter(int64_t i) const;
  double slope(double i) const;
  double after_warm_up(double i) const;

  const Arguments& args_;
  const std::string prefix_, policy_;
  const double base_;
};

double Policy::rate(int64_t iteration) const {
  const double i = static_cast<double>(iteration);
  if (policy_ == "fixed") return base_;
  if (policy_ == "step") {
    require({"stepsize", "gamma"});
    return base_ * std::pow(real("gamma"), std::floor(i / whole("stepsize")));
  }
  if (policy_ == "exp") {
    require({"gamma"});
    return base_ * std::pow(real("gamma"), i);
  }
  if (policy_ == "inv") {
    require({"gamma", "power"});
    return base_ * std::pow(1 + real("gamma") * i, -real("power"));
  }
  if (policy_ == "poly") {
    require({"power", "max_iter"});
    return base_ * std::pow(1 - i / whole("max_iter"), real("power"));
  }
  if (policy_ == "linearWarmup") {
    require({"start_multiplier", "num_iter"});
    return base_ * linear(real("start_multiplier"), i, whole("num_iter"));
  }
  if (policy_ == "constantWarmup") {
    require({"multiplier", "num_iter"});
    return base_ * (i < whole("num_iter") ? real("multiplier") : 1.0);
  }
  if (policy_ == "alter") return alter(iteration);
  if (policy_ == "hill") {
    require({"start_multiplier", "num_iter", "gamma", "power"});
    const double n = whole("num_iter");
    if (i < n) return base_ * linear(real("start_multiplier"), i, n);
    return base_ *
           std::fmax(std::pow(1 + real("gamma") * (i - n), -real("power")), real("end_multiplier"));
  }
  if (policy_ == "gate") {
    require({"num_iter"});
    const char* name = i < whole("num_iter") ? "multiplier_1" : "multiplier_2";
    return base_ * (has(name) ? real(name) : 1.0);
  }
  if (policy_ == "slope") return slope(i);
  if (policy_ == "cyclical") {
    require({"max_lr", "stepsize"});
    return cyclical(i, base_, real("max_lr"), whole("stepsize"), real("decay"));
  }
  if (policy_ == "cosine") {
    require({"max_lr"});
    return base_ * cosine(i, real("min_lr"), real("max_lr"), whole("period"), real("t_mult"),
                          real("lr_shrink"));
  }
  return after_warm_up(i);
}

double Policy::alter(int64_t i) const {
  require({"active_first", "active_period", "inactive_period"});
  const bool first = integer("active_first") != 0;
  const int64_t active = integer("active_period");
  const int64_t inactive = integer("inactive_period");
  CAFFE2_ENFORCE(active > 0 || inactive > 0,
                 "arguments 'active_period' and 'inactive_period' are both 0");
  const int64_t begin = first ? active : inactive;
  // Unsigned: the sum of two large periods stays defined.
  const auto place =
      static_cast<uint64_t>(i) % (static_cast<uint64_t>(active) + static_cast<uint64_t>(inactive));
  return (place < static_cast<uint64_t>(begin)) == first ? base_ : 0.0;
}

double Policy::slope(double i) const {
  require({"multiplier_1", "multiplier_2", "num_iter_1", "num_iter_2"});
  const double first = real("multiplier_1"), then = real("multiplier_2");
  const double begin = whole("num_iter_1"), end = whole("num_iter_2");
  if (begin < i && i < end) {
    return base_ * (first + (then - first) * (i - begin) / (end - begin));
  }
  return base_ * (i >= end ? then : first);
}

// constantThenLinearWarmup, compositeCyclical, compositeCosine.
double Policy::after_warm_up(double i) const {
  const double start = real("start_warmup_multiplier");
  const double constant = whole("constant_warmup_num_iter");
  const double growing = whole("linear_warmup_num_iter");
  if (i < constant) return base_ * start;
  if (i < constant + growing) return base_ * linear(start, i - constant, growing);
  i -= constant + growing;
  if (policy_ == "compositeCyclical") {
    return cyclical(i, base_, real("cyclical_max_lr"), whole("cyclical_step_size"),
                    real("cyclical_decay"));
  }
  if (policy_ == "compositeCosine") {
    return base_ * cosine(i, real("cosine_min_lr"), real("cosine_max_lr"), whole("cosine_period"),
                          real("cosine_t_mult"), real("cosine_lr_shrink"));
  }
  return base_;
}

class LearningRateOperator : public Operator {
 public:
  explicit LearningRateOperator(const OperatorContext& context) : Operator(context) {
    if (args().text("policy") != "composite") {
      policies_.push_back({INT64_MAX, 1, Policy(args(), "")});
      return;
    }
    const std::vector<int64_t> counts = args().integers("sub_policy_num_iters");
    CAFFE2_ENFORCE(!counts.empty(),
                   "argument 'sub_policy_num_iters' is missing; composite needs it");
    int64_t last = 0;
    for (size_t k = 0; k < counts.size(); k++) {
      last = counts[k] > INT64_MAX - last ? INT64_MAX : last + counts[k];
      const std::string prefix = "sub_policy_" + std::to_string(k) + "_";
      policies_.push_back({last, args().real(prefix + "lr_scale"), Policy(args(), prefix)});
    }
  }

 protected:
  void run() override {
    const Tensor& iter = input(0);
    CAFFE2_ENFORCE(iter.size() == 1, describe_input(0), " has shape ", iter.shape().text(),
                   "; one counter is needed");
    const int64_t i = iter.data<int64_t>()[0];
    CAFFE2_ENFORCE(i >= 0, describe_input(0), " is ", i, "; an iteration is not negative");
    size_t k = 0;
    while (k + 1 < policies_.size() && i > policies_[k].last) k++;
    const double value = policies_[k].scale * policies_[k].policy.rate(i);
    output(0, {}, DataType::kFloat).mutable_data<float>()[0] = static_cast<float>(value);
  }

 private:
  struct Part {
    int64_t last;  // iteration
    double scale;
    Policy policy;
  };
  std::vector<Part> policies_;
};

}  // namespace

REGISTER_CPU_OPERATOR(LearningRate, LearningRateOperator)

}  // namespace caffe2
