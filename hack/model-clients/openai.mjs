// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Talks to a chat with OpenAI's own client for JavaScript: by Responses or by Chat Completions, streamed, with a
// function that it runs. It writes what the model said last.
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.env.BASE_URL, apiKey: process.env.API_KEY });
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const question = "How is the weather in Rome?";

async function responses() {
  const tools = [{ type: "function", name: "weather", parameters, strict: false }];
  const ask = async (request) => client.responses.stream({ model: "default", tools, ...request }).finalResponse();
  const first = await ask({ input: question });
  const call = first.output.find((item) => item.type === "function_call");
  const output = { type: "function_call_output", call_id: call.call_id, output: "rain in " + JSON.parse(call.arguments).city };
  const second = await ask({ previous_response_id: first.id, input: [output] });
  return second.output.flatMap((item) => item.content ?? []).map((part) => part.text).join("");
}

async function completions() {
  const tools = [{ type: "function", function: { name: "weather", parameters, parse: JSON.parse, function: ({ city }) => "rain in " + city } }];
  const runner = client.chat.completions.runTools({ model: "default", stream: true, tools, messages: [{ role: "user", content: question }] });
  return runner.finalContent();
}

console.log(await { responses, completions }[process.argv[2]]());
