// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modelconfig finds the ChatModelConfig that answers a chat. It is pure.
package modelconfig

import (
	"fmt"
	"slices"
	"strings"

	"parley.dev/parley/api/v1beta1"
)

// Resolve picks the configuration that answers a chat: the one that it names, or the namespace's default if it names
// none, or if the one that it names cannot be used and the chat allows that.
// If there is none, the error says what to do about it. by is as in NotFound.
func Resolve(configs []v1beta1.ChatModelConfig, spec *v1beta1.ChatSpec, by string) (*v1beta1.ChatModelConfig,
	*v1beta1.GenerationError) {
	if spec.ModelConfigRef == nil {
		return resolveDefault(configs)
	}
	why := Unavailable(configs, spec.ModelConfigRef.Name, by)
	if why == nil {
		return Find(configs, spec.ModelConfigRef.Name), nil
	}
	if standIn := FirstDefault(configs); standIn != nil &&
		spec.WhenModelConfigUnavailable == v1beta1.ModelConfigUnavailableUseDefault {
		return standIn, nil
	}
	return nil, why
}

// Unavailable is why the configuration of that name cannot be used by anybody; nil if it can. by is as in NotFound.
func Unavailable(configs []v1beta1.ChatModelConfig, name, by string) *v1beta1.GenerationError {
	switch named := Find(configs, name); {
	case named == nil:
		return NotFound(name, by)
	case named.Spec.Disabled:
		return Disabled(name, by)
	}
	return nil
}

// Disabled says that a ChatModelConfig is disabled; by is as in NotFound.
func Disabled(name, by string) *v1beta1.GenerationError {
	return &v1beta1.GenerationError{
		Reason:  v1beta1.ErrorModelConfigDisabled,
		Message: fmt.Sprintf("ChatModelConfig %s, which %s names, is disabled", name, by),
		Advice:  "Change the reference, or take spec.disabled out of it",
	}
}

// Enabled is the configuration of that name if it can be used, or nil.
func Enabled(configs []v1beta1.ChatModelConfig, name string) *v1beta1.ChatModelConfig {
	if config := Find(configs, name); config != nil && !config.Spec.Disabled {
		return config
	}
	return nil
}

// ByChat is the field of a chat that names a ChatModelConfig.
const ByChat = "spec.modelConfigRef"

// NotFound says that a ChatModelConfig does not exist. by is the field that names it, and of which object where that is
// not the one that is spoken of.
func NotFound(name, by string) *v1beta1.GenerationError {
	return &v1beta1.GenerationError{
		Reason:  v1beta1.ErrorModelConfigNotFound,
		Message: fmt.Sprintf("ChatModelConfig %s, which %s names, does not exist", name, by),
		Advice:  "Create it, or change the reference",
	}
}

// Find is the configuration of that name, or nil.
func Find(configs []v1beta1.ChatModelConfig, name string) *v1beta1.ChatModelConfig {
	for i := range configs {
		if configs[i].Name == name {
			return &configs[i]
		}
	}
	return nil
}

// Missing names the configurations that config names, as fallbacks, or to write something, and that do
// not exist or are disabled.
func Missing(configs []v1beta1.ChatModelConfig, config *v1beta1.ChatModelConfig) []string {
	return Unusable(configs, references(&config.Spec))
}

// Unusable names those of the references that lead to no configuration, or to one that is disabled.
func Unusable(configs []v1beta1.ChatModelConfig, refs []v1beta1.ModelConfigReference) (missing []string) {
	for _, ref := range refs {
		if Enabled(configs, ref.Name) == nil && !slices.Contains(missing, ref.Name) {
			missing = append(missing, ref.Name)
		}
	}
	return missing
}

// references are the configurations that a configuration names and that would be asked for something.
func references(spec *v1beta1.ChatModelConfigSpec) []v1beta1.ModelConfigReference {
	var others []*v1beta1.ModelConfigReference
	if c := spec.Compaction; c != nil {
		others = append(others, c.ModelConfigRef)
	}
	for _, captions := range []*v1beta1.CaptionSettings{spec.Titles, spec.TurnSummaries} {
		if captions.On() {
			others = append(others, captions.ModelConfigRef)
		}
	}
	named := slices.Clip(spec.Fallbacks)
	for _, ref := range others {
		if ref != nil {
			named = append(named, *ref)
		}
	}
	return named
}

func resolveDefault(configs []v1beta1.ChatModelConfig) (*v1beta1.ChatModelConfig, *v1beta1.GenerationError) {
	if first := FirstDefault(configs); first != nil {
		return first, nil
	}
	names := usable(configs)
	if names == "" {
		return nil, &v1beta1.GenerationError{Reason: v1beta1.ErrorModelConfigNotFound,
			Message: "This namespace has no enabled ChatModelConfig", Advice: "Create one with default: true"}
	}
	return nil, &v1beta1.GenerationError{
		Reason:  v1beta1.ErrorModelConfigNotFound,
		Message: "The chat names no ChatModelConfig, and none of this namespace is the default",
		Advice:  "Name one in spec.modelConfigRef: " + names + ". Or set default: true in one of them",
	}
}

// usable names some of the configurations that a chat can name; empty if there is none.
func usable(configs []v1beta1.ChatModelConfig) string {
	const most = 5
	var names []string
	for i := range configs {
		if c := &configs[i]; !c.Spec.Disabled && c.DeletionTimestamp.IsZero() {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " or others"
	}
	return strings.Join(names, ", ")
}

// FirstDefault is the first configuration by name that says default: true and is not disabled, or nil.
func FirstDefault(configs []v1beta1.ChatModelConfig) *v1beta1.ChatModelConfig {
	var first *v1beta1.ChatModelConfig
	for i := range configs {
		if c := &configs[i]; c.Spec.Default && !c.Spec.Disabled && c.DeletionTimestamp.IsZero() &&
			(first == nil || c.Name < first.Name) {
			first = c
		}
	}
	return first
}
