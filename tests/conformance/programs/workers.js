const { Worker, isMainThread, parentPort } = require("worker_threads");
const { execFileSync } = require("child_process");
if (isMainThread) {
  const worker = new Worker(__filename);
  worker.on("message", (text) => { console.log(text); console.error(execFileSync("echo", ["child"]).toString()); });
  worker.on("exit", () => process.exit(4));
} else {
  parentPort.postMessage(`sum ${[...Array(1000).keys()].reduce((a, b) => a + b)}`);
}
