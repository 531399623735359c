// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Talks to a chat with Anthropic's own client for JavaScript, streamed, with a tool that it runs. It writes what the
// model said last.
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: process.env.BASE_URL, apiKey: process.env.API_KEY });
const input_schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const messages = [{ role: "user", content: "How is the weather in Rome?" }];
const ask = async () =>
  client.messages.stream({ model: "default", max_tokens: 1000, tools: [{ name: "weather", input_schema }], messages }).finalMessage();

const first = await ask();
const call = first.content.find((block) => block.type === "tool_use");
messages.push({ role: "assistant", content: first.content });
messages.push({ role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: "rain in " + call.input.city }] });
const second = await ask();
console.log(second.content.map((block) => block.text).join(""));
