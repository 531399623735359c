// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provider turns a ChatModelConfig into a model that can be called. What it returns behaves the same for every
// provider, within the limits of the protocols. Callers use fantasy.LanguageModel and depend on no protocol.
//
// The way of a call, and of its reply:
//
//	step, advisor, captions           a fantasy.Call: prompt, tools, wire.Settings (Call, Pin)
//	  finish.Model                    v reply: its outcome, calls that were cut (finish.Table)
//	    outputModel                   v an answer by a schema through a tool, where the provider has none
//	      fileurl.Model               v files by URL; asks again without one that the provider refuses
//	        imageModel                v asks again with fewer images, if the provider refuses so many
//	          responses.Model         v asks again without reasoning that OpenAI refuses
//	            wire.Model            v one HTTP request
//	              identity            v the pod's token, in place of a key (NewAs)
//	              chatcompletions, responses, messages, gemini
//	                                  the request of the protocol; ^ its events become wire.Parts
//	            wire                  ^ one reader of events, documents and AWS frames
//	              httpguard           ^ bounds, redirects, notes for explanations of errors
//
// Package fault explains what fails on the way. A protocol imports no other protocol, and of a provider's library the
// types of requests and events alone.
package provider
