// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/pty"
)

func TestInterruptEndsReadOfOpenPipe(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"send triage -", "new a -", "new -f -", "import -", "run", "run why -", "edit triage m -",
		"redact triage", "archives redact triage", "restore -f -"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			ctx, interrupt := context.WithCancel(t.Context())
			in, writer := io.Pipe()
			var out, errOut pty.Output
			ended := make(chan int, 1)
			go func() {
				ended <- Run(ctx, genericiooptions.IOStreams{In: in, Out: &out, ErrOut: &errOut},
					append([]string{"--kubeconfig", "/none"}, strings.Fields(args)...))
			}()
			_, err := io.WriteString(writer, "it reads")
			check.OK(t, err)
			interrupt()
			select {
			case code := <-ended:
				check.Equal(t, "exit code", exitStopped, code)
			case <-time.After(time.Minute):
				t.Error("it still reads")
			}
			check.OK(t, writer.Close())
			check.Contains(t, errOut.String(), "reading ", "context canceled")
		})
	}
}
