// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package generation has no code: its packages are what runs in a generation pod. They may import every folder of
// internal/ but gateway and cli.
//
// Start with runner: it watches the chats that are given to its pod, and runs each attempt. Then:
//
//	step        one step: a call of the model, or calls of tools
//	prompt      what the model reads of the history; compaction below it
//	models      the model of a ChatModelConfig, with its key
//	provider    the wire protocols; provider/wire/events.go reads a reply's stream, and one package for each protocol
//	            its events
//	collect     the parts of a step, as the content of one ChatMessage
//	observe     one event for each call: metrics, spans and recordings
//	captions    titles and summaries of turns
//	advisor     the tool that asks another model
//	chain       histories, read and kept
//	sources     instructions, skills and files, read
//	workspaces  the workspace of a chat, and the token for it
package generation
