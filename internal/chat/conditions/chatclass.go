// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"strings"
	"time"

	"parley.dev/parley/api/v1beta1"
)

// ChatClass writes the conditions of a ChatClass. firstDefault is the name of the namespace's first one that says
// default: true, missing are the ChatModelConfigs that it names and that do not exist or are disabled.
func ChatClass(class *v1beta1.ChatClass, firstDefault string, missing []string, now time.Time) {
	summary := Done(v1beta1.ReasonAccepted, "Chats may name it")
	switch {
	case class.Spec.Default && firstDefault == class.Name:
		summary.Message = "Chats have it that name no other"
	case class.Spec.Default:
		summary = Done(v1beta1.ReasonMultipleDefaults, "Chats may name it, but it is not the default: ChatClass "+
			firstDefault+" says default: true too and comes first by name")
	}
	summary.apply(&class.Status.Conditions, class.Generation, now)
	setOrRemove(&class.Status.Conditions, v1beta1.ConditionReferencesUnresolved, len(missing) > 0, Summary{
		Reason: v1beta1.ReasonReferenceNotFound,
		Message: "Names ChatModelConfigs that do not exist or are disabled: " + strings.Join(missing, ", ") +
			". Create or enable them, or take them out of defaults and restrictions",
	}, class.Generation, now)
	class.Status.ObservedGeneration = class.Generation
}
