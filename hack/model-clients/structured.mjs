// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Asks a chat for JSON by a Zod schema, with the client that is named: the first reply must call a tool that the client
// runs, and the answer is streamed. It writes what the client has parsed.
import Anthropic from "@anthropic-ai/sdk";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const { OPENAI_URL: baseURL, ANTHROPIC_URL, API_KEY: apiKey } = process.env;
const Forecast = z.object({ city: z.string(), days: z.array(z.object({ sky: z.enum(["rain", "sun"]), degrees: z.number().nullable() })) });
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false };
const messages = [{ role: "user", content: "How is the weather in Rome?" }];

async function completions() {
  const client = new OpenAI({ baseURL, apiKey });
  const ask = { model: "default", tool_choice: "required", stop: "END", response_format: zodResponseFormat(Forecast, "forecast"),
    tools: [{ type: "function", function: { name: "weather", strict: true, parameters } }], messages };
  const { message } = (await client.chat.completions.parse(ask)).choices[0];
  const call = message.tool_calls[0];
  messages.push(message, { role: "tool", tool_call_id: call.id, content: "rain in " + call.function.parsed_arguments.city });
  return (await client.chat.completions.stream(ask).finalChatCompletion()).choices[0].message.parsed;
}

async function responses() {
  const client = new OpenAI({ baseURL, apiKey });
  const ask = { model: "default", text: { format: zodTextFormat(Forecast, "forecast") },
    tools: [{ type: "function", name: "weather", strict: true, parameters }] };
  const first = await client.responses.parse({ ...ask, tool_choice: { type: "function", name: "weather" }, input: messages });
  const call = first.output.find((item) => item.type === "function_call");
  const output = { type: "function_call_output", call_id: call.call_id, output: "rain in " + call.parsed_arguments.city };
  return (await client.responses.stream({ ...ask, previous_response_id: first.id, input: [output] }).finalResponse()).output_parsed;
}

async function anthropic() {
  const client = new Anthropic({ baseURL: ANTHROPIC_URL, apiKey });
  const ask = { model: "default", max_tokens: 1000, tool_choice: { type: "any" }, stop_sequences: ["END"],
    output_config: { format: zodOutputFormat(Forecast) }, tools: [{ name: "weather", input_schema: parameters }], messages };
  const { content } = await client.messages.parse(ask);
  const call = content.find((block) => block.type === "tool_use");
  messages.push({ role: "assistant", content });
  messages.push({ role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: "rain in " + call.input.city }] });
  return (await client.messages.stream(ask).finalMessage()).parsed_output;
}

console.log(JSON.stringify(await { completions, responses, anthropic }[process.argv[2]]()));
