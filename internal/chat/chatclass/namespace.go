// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatclass

import (
	"cmp"
	"strings"

	"parley.dev/parley/api/v1beta1"
)

// Namespace is the class whose namespacePreamble stands before all else in every chat of the namespace, whatever class
// that names: the default; nil if it has none.
func Namespace(classes []v1beta1.ChatClass) *v1beta1.ChatClass {
	if class := FirstDefault(classes); class != nil && class.Spec.NamespacePreamble != "" {
		return class
	}
	return nil
}

// Behind is a text with a preamble before it, and a blank line between them. A blank one of both is left out.
func Behind(preamble, text string) string {
	if strings.TrimSpace(preamble) == "" || strings.TrimSpace(text) == "" {
		return cmp.Or(strings.TrimSpace(preamble), text)
	}
	return preamble + "\n\n" + text
}
