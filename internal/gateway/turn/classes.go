// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"slices"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/chatclass"
)

// AdaptToClasses adapts what NewChat adds on its own, the retention and the time that calls wait, to the ChatClasses of
// the namespace. Their admission policy refuses a chat with more than they allow, and the client asked for neither.
func AdaptToClasses(chat *v1beta1.Chat, classes []v1beta1.ChatClass) {
	spec := &chat.Spec
	if class, _ := chatclass.Resolve(classes, spec); class != nil && spec.Retention != nil {
		if defaults := class.Spec.Defaults.Retention; defaults != nil { // The chat's retention replaces it as a whole.
			spec.Retention.Archive = defaults.Archive
		}
	}
	for i := range classes {
		class := &classes[i]
		applies := class.Name == spec.ChatClassName || spec.ChatClassName == "" && class.Spec.Default
		if applies && class.Spec.Restrictions != nil {
			restrict(spec, class.Spec.Restrictions)
		}
	}
}

// restrict keeps the retention and the limits that NewChat adds within restrictions. It adds no limit but one.
func restrict(spec *v1beta1.ChatSpec, by *v1beta1.ChatRestrictions) {
	if slices.Contains(by.Fields, v1beta1.FieldRetention) {
		spec.Retention = nil
	}
	if slices.Contains(by.Fields, v1beta1.FieldLimits) {
		spec.Limits = nil
	}
	if r := spec.Retention; r != nil && by.Retention != nil {
		r.DeleteAfterSeconds = lower(r.DeleteAfterSeconds, by.Retention.DeleteAfterSeconds)
	}
	if l := spec.Limits; l != nil && by.Limits != nil {
		l.ActionDeadlineSeconds = lower(l.ActionDeadlineSeconds, by.Limits.ActionDeadlineSeconds)
	}
}

// lower is the lower of a value and the most there may be; nil: there is no most.
func lower(value, most *int32) *int32 {
	if value == nil || most == nil {
		return value
	}
	return new(min(*value, *most))
}
