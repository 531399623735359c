// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"parley.dev/parley/client"
	"parley.dev/parley/internal/cli"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/pty"
)

func TestEachKindOfErrorHasItsExitCode(t *testing.T) {
	chats := schema.GroupResource{Group: "parley.dev", Resource: "chats"}
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"nothing":                        {nil, 0},
		"a turn that failed":             {cli.NotReadyError{Reason: "Overloaded", Message: "no capacity"}, 1},
		"what nobody has foreseen":       {errors.New("it broke"), 1},
		"a gateway that is ill":          {&client.Error{Status: 500}, 1},
		"an odd output":                  {usageError{errors.New("odd")}, 2},
		"no such chat":                   {cli.NotFoundError("none"), 3},
		"nor for the API server":         {apierrors.NewNotFound(chats, "c"), 3},
		"nor for the gateway":            {&client.Error{Status: 404}, 3},
		"a right that is missing":        {apierrors.NewForbidden(chats, "c", nil), 4},
		"a token that has expired":       {apierrors.NewUnauthorized("expired"), 4},
		"the same of the gateway":        {&client.Error{Status: 403}, 4},
		"a name that is taken":           {apierrors.NewAlreadyExists(chats, "c"), 5},
		"an edit that came late":         {conflictError{"it was changed"}, 5},
		"time that is over":              {timeoutError{waited: time.Minute, what: "it"}, 6},
		"an API server that is too slow": {context.DeadlineExceeded, 6},
		"a call that waits for approval": {timeoutError{waited: time.Minute, what: "it", person: true}, 7},
		"an interrupted turn":            {cli.NotReadyError{Reason: "Interrupted", Message: "by somebody"}, 8},
		"ctrl-C":                         {context.Canceled, 130},
	} {
		t.Run(name, func(t *testing.T) {
			check.Equal(t, "it ends with", c.want, exitCode(c.err))
			if c.err == nil {
				return
			}
			if got := exitCode(terminal.DuringOutput(fmt.Errorf("doing it: %w", c.err))); got != c.want {
				t.Errorf("told below a conversation it ends with %d, want %d", got, c.want)
			}
		})
	}
}

func TestUnreadableArgumentsAreUsageErrors(t *testing.T) {
	for _, args := range []string{"", "sing", "send", "send c", "send c -", "edit c m -", "tail", "tail a b",
		"ls --sideways", "ls -o table", "usage c -A", "usage --by moon", "show c --last 0", "show c --last 2 --all",
		"send c hi -o name", "run hi -o json", "rename c"} {
		var out, errOut strings.Builder
		streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
		code := Run(t.Context(), streams, strings.Fields(args))
		if args == "" {
			if code != 0 || !strings.Contains(out.String(), "Talk to AI models") {
				t.Errorf("without a verb it ends with %d and %q", code, out.String())
			}
			continue
		}
		if code != exitUsage || !strings.HasPrefix(errOut.String(), "kubectl chat: ") ||
			strings.HasSuffix(errOut.String(), " \n") {
			t.Errorf("%q ends with %d and %q", args, code, errOut.String())
		}
	}
}

func TestLsLeadsToGet(t *testing.T) {
	for _, args := range []string{"ls triage", "ls --sort-by .metadata.name", "ls -o jsonpath={.metadata.name}",
		"ls -o custom-columns=NAME:.metadata.name"} {
		var out, errOut strings.Builder
		streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
		check.Equal(t, args, exitUsage, Run(t.Context(), streams, strings.Fields(args)))
		check.Contains(t, errOut.String(), "kubectl chat get ")
	}
}

func TestFamiliarVerbsLeadToOurs(t *testing.T) {
	for args, want := range map[string]string{"create x": "\tnew\n", "history x": "\tshow\n"} {
		var out, errOut strings.Builder
		streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
		check.Equal(t, args, exitUsage, Run(t.Context(), streams, strings.Fields(args)))
		check.Contains(t, errOut.String(), want)
	}
}

func TestDefaultOfNothingIsNotShown(t *testing.T) {
	share, _, err := NewCommand(genericiooptions.IOStreams{}).Find([]string{"share"})
	check.OK(t, err)
	if help := share.UsageString(); strings.Contains(help, "(default 0") {
		t.Errorf("the help is %s", help)
	}
}

func TestTheHelpHasEveryExitCode(t *testing.T) {
	documented := map[int]bool{}
	for _, row := range regexp.MustCompile(`(?m)^  (\d+)  `).FindAllStringSubmatch(about, -1) {
		code, _ := strconv.Atoi(row[1]) // It has digits alone.
		documented[code] = true
	}
	for _, code := range []int{exitDone, exitFailed, exitUsage, exitNotFound, exitForbidden, exitConflict, exitTimedOut,
		exitNeedsPerson, exitInterrupted, exitStopped} {
		if !documented[code] {
			t.Errorf("code %d is not in the help", code)
		}
		delete(documented, code)
	}
	if len(documented) > 0 {
		t.Errorf("the help has %v", documented)
	}
}

func TestTheVersionIsPrintedWithoutACluster(t *testing.T) {
	for args, want := range map[string]string{
		"version":         "kubectl-chat " + ownVersion().Version + " (parley.dev/v1beta1, go",
		"version -o json": `"apiVersion":"parley.dev/v1beta1"`,
	} {
		var out, errOut pty.Output
		streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
		if code := Run(t.Context(), streams, strings.Fields(args+" --kubeconfig /none")); code != exitDone ||
			!strings.Contains(out.String(), want) {
			t.Errorf("%s: ended with %d, printed %q and %q", args, code, out.String(), errOut.String())
		}
	}
}

func TestHelpGroupsEveryVerb(t *testing.T) {
	root := NewCommand(genericiooptions.IOStreams{})
	for _, verb := range root.Commands() {
		if verb.GroupID == "" {
			t.Errorf("%s is in no group", verb.Name())
		}
		if help := verb.UsageString(); strings.Contains(help, "--as-group") {
			t.Errorf("the help of %s has the flags of all verbs: %s", verb.Name(), help)
		}
	}
}
