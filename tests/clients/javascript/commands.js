// SPDX-License-Identifier: Apache-2.0
// OpenPAI's own client, method by method. Each line on stdin is [part of the client, method, arguments]; each line on
// stdout is {result}, or {error} with the class that the client threw and what the server had answered.
"use strict";

const readline = require("readline");
const { PAIV2 } = require("@microsoft/openpai-js-sdk");

const client = new PAIV2.OpenPAIClient(JSON.parse(process.argv[2]));
const lines = readline.createInterface({ input: process.stdin });

async function answer(line) {
  const [part, method, values] = JSON.parse(line);
  try {
    return { result: await client[part][method](...values) };
  } catch (error) {
    return { error: { class: error.constructor.name, message: error.message, status: error.status, data: error.data } };
  }
}

(async () => {
  for await (const line of lines) {
    process.stdout.write(JSON.stringify(await answer(line)) + "\n");
  }
})();
