// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Hears what a chat says to a question, by the client that is named, and comes back when the connection is lost: with the
// id of the response where the protocol has that, else with the same request under the same key. It writes the answer.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import Anthropic from "@anthropic-ai/sdk";
import { streamText } from "ai";
import OpenAI from "openai";

const [, , name, question] = process.argv;
const { OPENAI_URL: baseURL, ANTHROPIC_URL, API_KEY: apiKey } = process.env;
const headers = { "Idempotency-Key": name };
const messages = [{ role: "user", content: question }];
let losses = 0;

async function again(hear) {
  for (;;) {
    try {
      return await hear();
    } catch (error) {
      losses++;
      if (losses > 20) throw error;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}

async function responses() {
  const client = new OpenAI({ baseURL, apiKey });
  let id, last, text = "";
  return again(async () => {
    const stream = id
      ? await client.responses.retrieve(id, { stream: true, starting_after: last })
      : await client.responses.create({ model: "default", input: question, stream: true }, { headers });
    for await (const event of stream) {
      last = event.sequence_number;
      if (event.type === "response.created") id = event.response.id;
      if (event.type === "response.output_text.delta") text += event.delta;
      if (event.type === "response.completed") return text;
    }
    throw new Error("the stream ended before the response");
  });
}

async function completions() {
  const client = new OpenAI({ baseURL, apiKey });
  return again(() => client.chat.completions.stream({ model: "default", messages }, { headers }).finalContent());
}

async function ai() {
  const parley = createOpenAICompatible({ name: "parley", baseURL, apiKey });
  return again(async () => {
    const result = streamText({ model: parley("default"), prompt: question, headers, onError() {} });
    for await (const part of result.fullStream) {
      if (part.type === "error") throw part.error;
    }
    return result.text;
  });
}

async function anthropic() {
  const client = new Anthropic({ baseURL: ANTHROPIC_URL, apiKey });
  return again(async () => {
    const message = await client.messages.stream({ model: "default", max_tokens: 1000, messages }, { headers }).finalMessage();
    return message.content.map((block) => block.text).join("");
  });
}

console.log(await { responses, completions, ai, anthropic }[name]());
console.error(`The connection was lost ${losses} times.`);
