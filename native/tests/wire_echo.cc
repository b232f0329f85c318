// Reads and writes messages for tests in other languages: wire_echo MESSAGE [borrow]
//
// Standard input holds frames: a length of 4 bytes, little-endian, and as many bytes. Each is
// answered by a frame that begins with one more byte: '=' and the message as written again, or
// '!' and the text of the error.
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/messages.h"

namespace {

using Echo = std::string (*)(std::string_view, const caffe2::ParseOptions&);

template <class Message>
std::string echo(std::string_view bytes, const caffe2::ParseOptions& options) {
  return caffe2::serialize(caffe2::parse<Message>(bytes, options));
}

const std::map<std::string_view, Echo> kEchoes = {
    {"Argument", echo<caffe2::Argument>},         {"BlobProto", echo<caffe2::BlobProto>},
    {"DeviceOption", echo<caffe2::DeviceOption>}, {"ExecutionStep", echo<caffe2::ExecutionStep>},
    {"ModelDef", echo<caffe2::ModelDef>},         {"NetDef", echo<caffe2::NetDef>},
    {"OperatorDef", echo<caffe2::OperatorDef>},   {"PlanDef", echo<caffe2::PlanDef>},
    {"QTensorProto", echo<caffe2::QTensorProto>}, {"TensorProto", echo<caffe2::TensorProto>},
    {"TensorProtos", echo<caffe2::TensorProtos>},
};

bool read_frame(std::string& frame) {
  uint32_t size;
  if (std::fread(&size, sizeof(size), 1, stdin) != 1) return false;
  frame.resize(size);
  return std::fread(frame.data(), 1, size, stdin) == size;
}

void write_frame(char kind, std::string_view body) {
  const uint32_t size = static_cast<uint32_t>(1 + body.size());
  std::fwrite(&size, sizeof(size), 1, stdout);
  std::fputc(kind, stdout);
  std::fwrite(body.data(), 1, body.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** words) {
  const auto found = count > 1 ? kEchoes.find(words[1]) : kEchoes.end();
  if (found == kEchoes.end()) {
    std::fprintf(stderr, "usage: wire_echo MESSAGE [borrow]\n");
    return 2;
  }
  caffe2::ParseOptions options;
  options.borrow = count > 2 && std::string_view(words[2]) == "borrow";
  for (std::string frame; read_frame(frame);) {
    try {
      write_frame('=', found->second(frame, options));
    } catch (const caffe2::Error& error) {
      write_frame('!', error.text());
    }
  }
  return 0;
}
