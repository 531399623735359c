// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Talks to a chat with the AI SDK and its provider for compatible servers, streamed, with a tool that it runs. It writes
// what the model said last.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { jsonSchema, stepCountIs, streamText, tool } from "ai";

const parley = createOpenAICompatible({ name: "parley", baseURL: process.env.BASE_URL, apiKey: process.env.API_KEY, includeUsage: true });
const result = streamText({
  model: parley("default"),
  prompt: "How is the weather in Rome?",
  stopWhen: stepCountIs(3),
  tools: {
    weather: tool({
      description: "Tells the weather.",
      inputSchema: jsonSchema({ type: "object", properties: { city: { type: "string" } }, required: ["city"] }),
      execute: async ({ city }) => "rain in " + city,
    }),
  },
});
for await (const part of result.fullStream) {
  if (part.type === "error") throw part.error;
}
const steps = await result.steps;
if ((await result.usage).outputTokens === 0) throw new Error("nobody has said what it took");
console.log(steps.at(-1).text);
