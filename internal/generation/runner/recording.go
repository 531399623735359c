// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"slices"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/debug"
	"parley.dev/parley/internal/generation/provider/fault"
)

func newRecorder(o Options) *debug.Recorder {
	return debug.New(debug.Options{
		Store: o.Client.DebugSteps(o.Namespace), Namespace: o.Namespace, Pod: o.Pod, Chats: o.Capacity, Off: o.NoRecordings,
		Log: o.Log, Lost: o.Metrics.RecordingLost, Now: o.Now,
	})
}

// recordedAs says of a model what its recordings need.
func recordedAs(config *v1alpha1.ChatModelConfig, key string) debug.Subject {
	about := (&target{config: config, key: key}).subject()
	return debug.Subject{Config: config, Key: key, Classify: func(err error) *v1alpha1.GenerationError { return fault.Classify(err, about) }}
}

// authorOf is who created the message whose turn the attempt is part of, as far as that is known.
func (a *attempt) authorOf(messages []v1alpha1.ChatMessage) string {
	for i := range slices.Backward(messages) {
		if turn := a.chat.Status.Turn; turn != nil && messages[i].Name == turn.Message {
			return messages[i].Annotations[v1alpha1.AnnotationCreatedBy]
		}
	}
	return ""
}

// endRecording tells the recording how the attempt ended. One that nobody waits for any more was stopped, whatever came of it.
func (a *attempt) endRecording(ctx context.Context, o outcome) {
	status := v1alpha1.DebugCompleted
	switch {
	case ctx.Err() != nil || o.kind == v1alpha1.OutcomeInterrupted:
		status = v1alpha1.DebugInterrupted
	case o.kind == v1alpha1.OutcomeFailed:
		status = v1alpha1.DebugError
	}
	a.recording.End(status, o.err)
}
