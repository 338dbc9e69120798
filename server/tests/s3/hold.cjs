// Preloaded into the S3 server of the tests (`node --require`). While the file `hold` exists in the folder HOLD, the server keeps parts of large
// files waiting. It creates the file `held` when a part waits. The test lets one of them pass with the file `pass`.

'use strict';

const { existsSync, rmSync, writeFileSync } = require('fs');
const { Server } = require('http');
const { join } = require('path');

const [hold, held, pass] = ['hold', 'held', 'pass'].map((name) => join(process.env.HOLD, name));
const waiting = [];
const { emit } = Server.prototype;

Server.prototype.emit = function (event, ...args) {
  const handle = () => emit.call(this, event, ...args);
  const isPart = event === 'request' && args[0].url.includes('partNumber=');
  if (!isPart || !existsSync(hold)) {
    return handle();
  }
  // The client may have ended meanwhile.
  waiting.push(() => !args[0].destroyed && handle());
  writeFileSync(held, '');
  return true;
};

setInterval(() => {
  if (!existsSync(hold)) {
    waiting.splice(0).forEach((handle) => handle());
  } else if (waiting.length > 0 && existsSync(pass)) {
    rmSync(pass, { force: true });
    while (waiting.length > 0 && !waiting.shift()());
  }
}, 10);
