// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modelserver is a scripted model: a real HTTP server that speaks OpenAI chat completions, OpenAI responses and
// Anthropic messages, as streams. It replies and fails as a script describes, refuses requests that the real providers
// refuse, and records every request. It also speaks Gemini's protocol, and those of OpenAI and Anthropic as Azure,
// OpenRouter, Vercel and AWS Bedrock host them, each at its own paths (see hosts).
//
// A script, as YAML:
//
//	requireKey: sk-right
//	rules:
//	- name: slow start
//	  match: {lastUserText: hello}
//	  times: 1
//	  reply:
//	    delayBefore: 200ms
//	    delayBetween: 30ms
//	    steps:
//	    - reasoning: Somebody greets me.
//	    - text: {value: "You said {{.LastUserText}}", pieceWords: 1}
//	- match: {toolOffered: current_time, toolResults: 0}
//	  reply: {steps: [{toolCalls: [{name: current_time, arguments: {timezone: UTC}}]}]}
//	- reply: {fault: {kind: Status, status: 429, retryAfter: {seconds: 7}}}
//
// Over HTTP, GET /_control/requests has what was recorded, DELETE forgets it, PUT /_control/script replaces the script
// and forgets it, and GET /healthz answers.
package modelserver
