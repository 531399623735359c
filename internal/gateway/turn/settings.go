// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1alpha1"
)

// Settings are how the model answers a request. They belong to the User message that begins the turn: results of calls
// continue a turn with the settings that it has.
type Settings struct {
	// Effort of the turn; empty: as the chat says.
	Effort v1alpha1.ReasoningEffort
	// Output is the schema that the answer matches; nil: as the chat says.
	Output *v1alpha1.OutputFormat
	// ToolChoice of the first reply; nil: the model decides.
	ToolChoice *v1alpha1.ToolChoice
	// Stop are texts at which the model stops.
	Stop []string
}

// Setting is one of the settings that results of calls cannot change.
type Setting string

const (
	// SettingOutput is Settings.Output.
	SettingOutput Setting = "Output"
	// SettingToolChoice is Settings.ToolChoice.
	SettingToolChoice Setting = "ToolChoice"
	// SettingStop is Settings.Stop.
	SettingStop Setting = "Stop"
)

// SettingError means that a request brings results of calls, and another setting than the turn has that they continue.
type SettingError struct{ Setting Setting }

// Error implements error.
func (e *SettingError) Error() string {
	return "results of calls continue a turn, which has another value: repeat that one, or leave the field out"
}

// Continue returns an error if the settings are others than those of a turn that results continue. began is the message
// that began it. Clients repeat what they have asked for, and what they leave out stays as it is.
func (s *Settings) Continue(chat *v1alpha1.Chat, began *v1alpha1.ChatMessage) error {
	switch {
	case s.Output != nil && !sameOutput(s.Output, OutputOf(chat, began)):
		return &SettingError{SettingOutput}
	case s.ToolChoice != nil && (began.Spec.ToolChoice == nil || *s.ToolChoice != *began.Spec.ToolChoice):
		return &SettingError{SettingToolChoice}
	case len(s.Stop) > 0 && !slices.Equal(s.Stop, began.Spec.Stop):
		return &SettingError{SettingStop}
	}
	return nil
}

func sameOutput(a, b *v1alpha1.OutputFormat) bool {
	return b != nil && sameJSON(&a.Schema, &b.Schema)
}

// sameJSON compares what two objects contain, since the API server stores their members in another order.
func sameJSON(a, b *runtime.RawExtension) bool {
	var x, y any
	return json.Unmarshal(a.Raw, &x) == nil && json.Unmarshal(b.Raw, &y) == nil && reflect.DeepEqual(x, y)
}

// AnnotationOutput on results of calls says that the answer of the turn that they continue is JSON.
const AnnotationOutput = "parley.dev/output"

// OutputOf is what the answer to a message matches; nil for text. The schema of an answer to results is not known: it
// is that of an earlier message.
func OutputOf(chat *v1alpha1.Chat, m *v1alpha1.ChatMessage) *v1alpha1.OutputFormat {
	if m.Annotations[AnnotationOutput] != "" {
		return &v1alpha1.OutputFormat{Schema: runtime.RawExtension{Raw: AnyObject()}}
	}
	return cmp.Or(m.Spec.Output, chat.Spec.Output)
}

// AnyObject is the schema that every object matches.
func AnyObject() []byte { return []byte(`{"type":"object"}`) }

// spec is a message that says nothing yet, with the settings of the request.
func (r *Request) spec() v1alpha1.ChatMessageSpec {
	spec := v1alpha1.ChatMessageSpec{ReasoningEffort: r.Effort, Output: r.Output, ToolChoice: r.ToolChoice, Stop: r.Stop}
	if r.Model != "" && !strings.HasPrefix(r.Model, ClassPrefix) {
		spec.ModelConfigRef = &v1alpha1.ModelConfigReference{Name: r.Model}
	}
	return spec
}
