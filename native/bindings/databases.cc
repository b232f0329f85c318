#include "bindings/databases.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "bindings/host.h"
#include "core/database.h"
#include "core/engine.h"

namespace caffe2::bindings {

namespace nb = nanobind;

namespace {

nb::bytes to_bytes(std::string_view text) { return nb::bytes(text.data(), text.size()); }

std::string to_text(const nb::handle& value) {
  nb::bytes bytes;
  if (!nb::try_cast(value, bytes))
    throw nb::type_error("a database gave a record that is no bytes");
  return std::string(bytes.c_str(), bytes.size());
}

class PythonCursor : public Cursor {
 public:
  explicit PythonCursor(HeldObject database) : database_(std::move(database)) { seek_to_first(); }

  void seek_to_first() override {
    in_python([&] { records_ = hold(nb::object(database_->attr("records")())); });
    next();
  }
  void next() override {
    valid_ = false;
    in_python([&] {
      const auto record = nb::steal(PyIter_Next(records_->ptr()));
      if (PyErr_Occurred() != nullptr) nb::raise_python_error();
      if (!record.is_valid()) return;
      key_ = to_text(nb::object(record[0]));
      value_ = to_text(nb::object(record[1]));
      valid_ = true;
    });
  }
  bool valid() const override { return valid_; }
  std::string_view key() const override { return key_; }
  std::string_view value() const override { return value_; }

 private:
  const HeldObject database_;
  HeldObject records_;
  bool valid_ = false;
  std::string key_, value_;
};

class PythonDatabase : public Database {
 public:
  explicit PythonDatabase(HeldObject object) : object_(std::move(object)) {}
  std::unique_ptr<Cursor> new_cursor() override { return std::make_unique<PythonCursor>(object_); }
  void put(std::string_view key, std::string_view value) override {
    in_python([&] { object_->attr("put")(to_bytes(key), to_bytes(value)); });
  }
  void commit() override {
    in_python([&] { object_->attr("commit")(); });
  }

 private:
  const HeldObject object_;
};

const char* mode_name(DatabaseMode mode) {
  switch (mode) {
    case DatabaseMode::kRead:
      return "read";
    case DatabaseMode::kWrite:
      return "write";
    default:
      return "new";
  }
}

DatabaseMode mode_named(const std::string& name) {
  for (const auto mode : {DatabaseMode::kRead, DatabaseMode::kWrite, DatabaseMode::kNew}) {
    if (name == mode_name(mode)) return mode;
  }
  fail(Code::kInvalidArgument, "a database is opened to read, to write or new, not to '", name,
       "'");
}

std::string_view view(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

const Cursor& at_record(const Cursor& cursor) {
  if (!cursor.valid()) fail(Code::kFailedPrecondition, "the cursor is behind the last record");
  return cursor;
}

}  // namespace

decltype(HostHooks::open_database) database_opener(nb::object callable) {
  if (callable.is_none()) return {};
  return [held = hold(std::move(callable))](const std::string& type, const std::string& path,
                                            DatabaseMode mode) {
    std::shared_ptr<Database> database;
    in_python([&] {
      nb::object object =
          (*held)(to_bytes(type).attr("decode")("utf-8", "replace"),
                  to_bytes(path).attr("decode")("utf-8", "surrogateescape"), mode_name(mode));
      if (!object.is_none()) database = std::make_shared<PythonDatabase>(hold(std::move(object)));
    });
    return database;
  };
}

void bind_databases(nb::module_& m) {
  nb::class_<Cursor>(m, "Cursor")
      .def("seek_to_first", &Cursor::seek_to_first)
      .def("next", &Cursor::next)
      .def("valid", &Cursor::valid)
      .def("supports_seek", [](Cursor&) { return false; })
      .def("key", [](Cursor& c) { return to_bytes(at_record(c).key()); })
      .def("value", [](Cursor& c) { return to_bytes(at_record(c).value()); });
  nb::class_<Database>(m, "Database")
      .def("new_cursor", &Database::new_cursor)
      .def("put", [](Database& d, const nb::bytes& key,
                     const nb::bytes& value) { d.put(view(key), view(value)); })
      .def("commit", &Database::commit);
  m.def(
      "open_database",
      [](Engine& engine, const std::string& type, const std::string& path,
         const std::string& mode) {
        return open_database(engine.hooks(), type, path, mode_named(mode));
      },
      nb::arg("engine"), nb::arg("type"), nb::arg("path"), nb::arg("mode"));
}

}  // namespace caffe2::bindings
