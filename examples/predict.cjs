// A model in one file answers in Node.js, by the C API compiled to WebAssembly:
//
//     node examples/predict.cjs build/wasm/native/api/caffe2.js model.pb 1,1,28,28 < digit.f32
//
// Reads float32 values of that shape, which are the first input that has to be fed, and writes the
// outputs as JSON.  `caffe2 optimize` writes such models.
"use strict";
const fs = require("fs");
const path = require("path");

// Where fields lie in the structs of caffe2.h, as pointers have 32 bits.
const ERROR = { size: 2444, text: 396 };
const TENSOR = { size: 152, type: 4, rank: 8, dims: 16, data: 144, bytes: 148 };
const OPTIONS = { size: 32, threads: 4 };
const FLOAT = 1;

class Predictor {
  // module: what caffe2.js gives; model: the bytes of a file
  constructor(module, model) {
    this.module = module;
    this.error = this.struct(ERROR);
    this.tensor = this.struct(TENSOR);
    const options = this.struct(OPTIONS);
    this.view().setInt32(options + OPTIONS.threads, 1, true);
    this.engine = this.create("engine_create", options);
    module.FS.writeFile("/model.pb", model);
    this.handle = this.create("predictor_open", this.engine, "/model.pb");
    module.FS.unlink("/model.pb");
  }

  get inputs() {
    const all = this.names("input");
    return all.filter((_, i) => this.call("predictor_input_needed", this.handle, i));
  }

  // values: a Float32Array; gives an object with a Float32Array for each output
  run(values, dims) {
    const { module, tensor } = this;
    const data = module._malloc(values.byteLength);
    module.HEAPU8.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), data);
    const view = this.view();
    view.setInt32(tensor + TENSOR.type, FLOAT, true);
    view.setInt32(tensor + TENSOR.rank, dims.length, true);
    dims.forEach((n, i) => view.setBigInt64(tensor + TENSOR.dims + 8 * i, BigInt(n), true));
    view.setUint32(tensor + TENSOR.data, data, true);
    view.setUint32(tensor + TENSOR.bytes, values.byteLength, true);
    try {
      this.check("predictor_feed", this.handle, this.inputs[0], tensor);
    } finally {
      module._free(data);
    }
    this.check("predictor_run", this.handle);
    return Object.fromEntries(this.names("output").map((name) => [name, this.output(name)]));
  }

  output(name) {
    this.check("predictor_view", this.handle, name, this.tensor);
    const view = this.view();
    if (view.getInt32(this.tensor + TENSOR.type, true) !== FLOAT) {
      throw new Error(`output '${name}' is no tensor of float32`);
    }
    const begin = view.getUint32(this.tensor + TENSOR.data, true);
    const bytes = view.getUint32(this.tensor + TENSOR.bytes, true);
    return new Float32Array(this.module.HEAPU8.slice(begin, begin + bytes).buffer);
  }

  names(kind) {
    const count = this.call(`predictor_${kind}_count`, this.handle);
    return Array.from({ length: count }, (_, i) =>
      this.module.UTF8ToString(this.call(`predictor_${kind}_name`, this.handle, i)),
    );
  }

  // Memory may have grown since the last call, and has then moved for JavaScript.
  view() {
    return new DataView(this.module.HEAPU8.buffer);
  }

  struct({ size }) {
    const pointer = this.module._malloc(size);
    this.module.HEAPU8.fill(0, pointer, pointer + size);
    this.view().setUint32(pointer, size, true);
    return pointer;
  }

  create(name, ...args) {
    const place = this.module._malloc(4);
    this.check(name, ...args, place);
    const handle = this.view().getUint32(place, true);
    this.module._free(place);
    return handle;
  }

  check(name, ...args) {
    if (this.call(name, ...args, this.error) !== 0) {
      throw new Error(this.module.UTF8ToString(this.error + ERROR.text));
    }
  }

  call(name, ...args) {
    const types = args.map((arg) => (typeof arg === "string" ? "string" : "number"));
    return this.module.ccall(`caffe2_${name}`, "number", types, args);
  }
}

async function main([library, model, shape]) {
  if (shape === undefined) {
    throw new Error("usage: predict.cjs caffe2.js model.pb 1,3,224,224 < values");
  }
  const wasmBinary = fs.readFileSync(library.replace(/js$/, "wasm"));
  const module = await require(path.resolve(library))({ wasmBinary });
  const predictor = new Predictor(module, fs.readFileSync(model));
  const values = new Float32Array(new Uint8Array(fs.readFileSync(0)).buffer);
  const outputs = predictor.run(values, shape.split(",").map(Number));
  const listed = Object.entries(outputs).map(([name, found]) => [name, Array.from(found)]);
  console.log(JSON.stringify(Object.fromEntries(listed)));
}

main(process.argv.slice(2)).then(
  () => process.exit(0),
  (error) => {
    console.error(`predict.cjs: ${error.message}`);
    process.exit(1);
  },
);
