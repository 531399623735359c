// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package telemetry holds the name of every metric, span and attribute, and the metrics of each program. Package
// tracing below it makes the spans.
//
// Invariant: a label's values come from a closed set (enums of the API, names of built-in tools) and never name a chat,
// a namespace or a person, and a model only where a compaction is counted. Should a set grow beyond maxValues after
// all, what comes later counts as "other". So the number of series does not depend on the number of chats.
// It links neither Kubernetes nor OpenTelemetry: the relay uses it.
package telemetry
