// Tensors that grow: rows appended, collected or kept in a ring.
#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "core/registry.h"
#include "operators/records.h"
#include "operators/segments.h"

namespace caffe2 {
namespace {

class AppendBase : public Operator {
 public:
  using Operator::Operator;

 protected:
  // The rows of b can follow those of a; an a without elements takes any b.
  void require_rows(const Operand& what_a, const Tensor& a, const Operand& what_b,
                    const Tensor& b) const {
    CAFFE2_ENFORCE(b.rank() > 0, what_b, " is a scalar; rows are needed");
    if (a.size() == 0) return;
    CAFFE2_ENFORCE(a.type() == b.type(), what_a, " has type ", type_name(a.type()), " but ", what_b,
                   " has ", type_name(b.type()), "; they must be the same");
    CAFFE2_ENFORCE(a.rank() > 0 && with_rows(a.shape(), 0) == with_rows(b.shape(), 0), what_a,
                   " has shape ", a.shape().text(), " but ", what_b, " has ", b.shape().text(),
                   "; they may differ in the first dimension alone");
  }

  // A tensor like b with room for more rows than it has: appending takes linear time in all.
  Tensor with_room(const Tensor& b, int64_t rows) const {
    const Shape shape = with_rows(b.shape(), rows);
    if (b.type() == DataType::kString) return Tensor(engine().allocator(), shape, b.type());
    const auto bytes = static_cast<int64_t>(Tensor::bytes_for(shape, b.type()));
    auto storage = std::make_shared<Storage>(engine().allocator(), checked_size(bytes + bytes / 2));
    return Tensor(std::move(storage), shape, b.type());
  }

  // a and then b; in the memory of a where there is room and nobody but `holders` has it.
  Tensor appended(const Tensor& a, const Tensor& b, int holders) const {
    const int64_t before = a.size() == 0 ? 0 : a.dim(0), rows = before + b.dim(0);
    const Shape shape = with_rows(b.shape(), rows);
    const bool fits = a.storage().use_count() <= holders && a.storage()->views() == 0 &&
                      a.storage()->fits(Tensor::bytes_for(shape, b.type()), b.type());
    Tensor sum = fits ? Tensor(a.storage(), shape, b.type()) : with_room(b, rows);
    if (!fits && before > 0) copy_rows(a, 0, before, sum, 0, parallel());
    copy_rows(b, 0, b.dim(0), sum, before, parallel());
    return sum;
  }
};

// Inputs A, B; output A.
class AppendOperator : public AppendBase {
 public:
  using AppendBase::AppendBase;

 protected:
  void run() override {
    const Tensor &a = input(0), &b = input(1);
    require_rows(describe_input(0), a, describe_input(1), b);
    output_value(0, BlobValue{appended(a, b, 2), nullptr});  // held by the blob and this run
  }
};

// Inputs mutex, A..., B...; outputs A...
class AtomicAppendOperator : public AppendBase {
 public:
  using AppendBase::AppendBase;

 protected:
  void run() override {
    const auto mutex = input_object<Mutex>(0);
    const int n = outputs();
    CAFFE2_ENFORCE(inputs() == 1 + 2 * n, "it has ", inputs(), " inputs and ", n,
                   " outputs; needed are a mutex and two inputs per output");
    std::lock_guard lock(mutex->mutex);
    // What the blobs hold under the lock: others append at the same time.
    std::vector<Tensor> sums;
    for (int i = 0; i < n; i++) {
      const Tensor a = present_input(1 + i).tensor;
      CAFFE2_ENFORCE(a.storage(), describe_input(1 + i), " holds no tensor");
      require_rows(describe_input(1 + i), a, describe_input(1 + n + i), input(1 + n + i));
    }
    for (int i = 0; i < n; i++) {
      // Held by the blob, this run and here.
      const Tensor a = present_input(1 + i).tensor;
      sums.push_back(appended(a, input(1 + n + i), 3));
    }
    for (int i = 0; i < n; i++) output_blobs()[i]->set(sums[i]);
  }
};

class TensorVector : public Object {
 public:
  const char* kind() const override { return "std::unique_ptr<std::vector<caffe2::Tensor> >"; }
  ForkMutex mutex;
  std::vector<Tensor> tensors;
};

class CreateTensorVectorOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override { output_object(0, std::make_shared<TensorVector>()); }
};

class TensorVectorSizeOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const auto vector = input_object<TensorVector>(0);
    std::lock_guard lock(vector->mutex);
    *output(0, {}, DataType::kInt32).mutable_data<int32_t>() =
        static_cast<int32_t>(vector->tensors.size());
  }
};

class ConcatTensorVectorOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const auto vector = input_object<TensorVector>(0);
    std::vector<Tensor> tensors;
    {
      std::lock_guard lock(vector->mutex);
      tensors = vector->tensors;
    }
    CAFFE2_ENFORCE(!tensors.empty(), describe_input(0), " holds no tensor yet");
    const Tensor& first = tensors[0];
    int64_t rows = 0;
    for (const Tensor& t : tensors) {
      CAFFE2_ENFORCE(t.rank() > 0 && t.type() == first.type() &&
                         with_rows(t.shape(), 0) == with_rows(first.shape(), 0),
                     describe_input(0), " holds tensors of shapes ", first.shape().text(), " and ",
                     t.shape().text(), ", which cannot be joined");
      rows += t.dim(0);
    }
    Tensor& y = output(0, with_rows(first.shape(), rows), first.type());
    int64_t at = 0;
    for (const Tensor& t : tensors) {
      copy_rows(t, 0, t.dim(0), y, at, parallel());
      at += t.dim(0);
    }
  }
};

// Keeps a uniform sample of all that it has seen (Vitter, 1985, "Random sampling with a
// reservoir"), the same places in each vector.
class CollectTensorOperator : public Operator {
 public:
  explicit CollectTensorOperator(const OperatorContext& context)
      : Operator(context), wanted_(args().integer("num_to_collect")) {}

 protected:
  void run() override {
    const int n = outputs();
    CAFFE2_ENFORCE(inputs() == 2 * n, "it has ", inputs(), " inputs and ", n,
                   " outputs; needed are two inputs per output");
    std::vector<Tensor> copies;
    for (int i = 0; i < n; i++) {
      (void)input_object<TensorVector>(i);
      const Tensor& x = input(n + i);
      copies.emplace_back(engine().allocator(), x.shape(), x.type());
      copies.back().copy_from(x);
    }
    int64_t place = seen_;
    if (seen_ >= wanted_) {
      const RandomStream stream = next_random_stream();
      kernels::RandomState state{stream.seed, static_cast<uint64_t>(stream.op) << 32 | stream.run,
                                 0};
      int32_t drawn[2];
      kernels().uniform_int(state, 0, INT32_MAX, 2, drawn, parallel());
      place = ((static_cast<int64_t>(drawn[0]) << 31) | drawn[1]) % (seen_ + 1);
    }
    seen_++;
    for (int i = 0; i < n; i++) {
      const auto vector = input_object<TensorVector>(i);
      std::lock_guard lock(vector->mutex);
      if (place >= static_cast<int64_t>(vector->tensors.size())) {
        if (static_cast<int64_t>(vector->tensors.size()) < wanted_) {
          vector->tensors.push_back(copies[i]);
        }
      } else {
        vector->tensors[place] = copies[i];
      }
      output_value(i, input_value(i));
    }
  }

 private:
  const int64_t wanted_;
  int64_t seen_ = 0;
};

// Inputs last_n, next, DATA, mutex?, num_visited?; outputs last_n, next, num_visited?.
class LastNWindowCollectorOperator : public AppendBase {
 public:
  explicit LastNWindowCollectorOperator(const OperatorContext& context)
      : AppendBase(context), wanted_(args().integer("num_to_collect")) {}
  bool takes_empty(int i) const override { return i == 0; }

 protected:
  void run() override {
    if (inputs() < 4) {
      collect();
      return;
    }
    const auto mutex = input_object<Mutex>(3);
    std::lock_guard lock(mutex->mutex);
    collect();
  }

 private:
  void collect() {
    const Tensor& data = input(2);
    const Tensor present = present_input(0).tensor, at = present_input(1).tensor;
    CAFFE2_ENFORCE(data.rank() > 0, describe_input(2), " is a scalar; rows are needed");
    CAFFE2_ENFORCE(at.size() == 1 && at.type() == DataType::kInt32, describe_input(1),
                   " has shape ", at.shape().text(), "; one int32 is needed");
    const bool empty = !present.storage() || present.size() == 0;
    if (!empty) require_rows(describe_input(0), present, describe_input(2), data);
    const int64_t n = data.dim(0), before = empty ? 0 : present.dim(0);
    int64_t next = empty ? 0 : *at.data<int32_t>();
    CAFFE2_ENFORCE(empty || (next >= 0 && next < std::max(before, wanted_) && next <= before),
                   describe_input(1), " is ", next, "; ", describe_input(0), " has ", before,
                   " rows");
    // Rows that are seen and overwritten at once are not written at all; the ring begins anew.
    const int64_t skipped = std::max<int64_t>(0, n - wanted_), kept = n - skipped;
    if (skipped > 0) next = 0;
    const int64_t rows = std::max(before, std::min(wanted_, before + kept));
    Tensor ring = with_room(data, rows);
    Tensor cursor(engine().allocator(), {}, DataType::kInt32);
    Tensor visited = visits(n);
    if (before > 0) copy_rows(present, 0, before, ring, 0, parallel());
    const int64_t first = std::min(kept, wanted_ - std::min(next, wanted_));
    copy_rows(data, skipped, first, ring, next, parallel());
    copy_rows(data, skipped + first, kept - first, ring, 0, parallel());
    *cursor.mutable_data<int32_t>() = static_cast<int32_t>((next + kept) % wanted_);
    output_blobs()[0]->set(ring);
    output_blobs()[1]->set(cursor);
    if (visited.storage()) output_blobs()[2]->set(visited);
  }

  Tensor visits(int64_t n) const {
    if (outputs() < 3) return {};
    const Tensor before = present_input(4).tensor;
    CAFFE2_ENFORCE(before.size() == 1 && before.type() == DataType::kInt64, describe_input(4),
                   " has shape ", before.shape().text(), "; one int64 is needed");
    Tensor after(engine().allocator(), before.shape(), DataType::kInt64);
    *after.mutable_data<int64_t>() = *before.data<int64_t>() + n;
    return after;
  }

  const int64_t wanted_;
};

}  // namespace

REGISTER_CPU_OPERATOR(Append, AppendOperator)
REGISTER_CPU_OPERATOR(AtomicAppend, AtomicAppendOperator)
REGISTER_CPU_OPERATOR(CreateTensorVector, CreateTensorVectorOperator)
REGISTER_CPU_OPERATOR(TensorVectorSize, TensorVectorSizeOperator)
REGISTER_CPU_OPERATOR(ConcatTensorVector, ConcatTensorVectorOperator)
REGISTER_CPU_OPERATOR(CollectTensor, CollectTensorOperator)
REGISTER_CPU_OPERATOR(LastNWindowCollector, LastNWindowCollectorOperator)

}  // namespace caffe2
