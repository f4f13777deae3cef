// log.mjs: a file of JSON lines that survives kill -9 and power cuts. Shop and provider each have
// one.
import { closeSync, fsyncSync, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";
import { dirname, resolve } from "node:path";

export class Log {
  constructor(path) {
    this.file = openSync(path, "a+");
    const folder = openSync(dirname(resolve(path)), "r");
    fsyncSync(folder); // without it a power cut may take the new file away, with all its lines
    closeSync(folder);
    const bytes = readFileSync(path);
    const end = bytes.lastIndexOf("\n") + 1;
    ftruncateSync(this.file, end); // half a line: its add() did not return, so nothing relies on it
    fsyncSync(this.file); // a whole line may be unsynced too; from now on something relies on it
    const lines = bytes.toString("utf8", 0, end).split("\n").filter(Boolean);
    this.lines = lines.map(line => JSON.parse(line));
  }

  // The line is on the disk when this returns.
  add(line) {
    writeSync(this.file, JSON.stringify(line) + "\n");
    fsyncSync(this.file);
    this.lines.push(line);
  }
}
