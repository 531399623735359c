// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"parley.dev/parley/test/kit/pty"
)

func TestTheVersionIsPrintedWithoutACluster(t *testing.T) {
	for args, want := range map[string]string{
		"version":         "kubectl-chat " + ownVersion().Version + " (parley.dev/v1alpha1, go",
		"version -o json": `"apiVersion":"parley.dev/v1alpha1"`,
	} {
		var out, errOut pty.Output
		streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
		if code := Run(t.Context(), streams, strings.Fields(args+" --kubeconfig /none")); code != exitDone ||
			!strings.Contains(out.String(), want) {
			t.Errorf("%s: ended with %d, printed %q and %q", args, code, out.String(), errOut.String())
		}
	}
}
