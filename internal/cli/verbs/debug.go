// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/cli/render"
)

// debugPage is how many recordings are asked for at once: each may have half a MiB.
const debugPage = 20

func newDebug(o *options) *cobra.Command {
	var number int
	cmd := &cobra.Command{
		Use:   "debug CHAT",
		Short: "Show what was recorded of a chat's model calls",
		Long: "Lists the model calls that were recorded while debugging was on (spec.debug of the Chat or its " +
			"ChatModelConfig), turn by turn. --step shows one: what the model was asked, what it answered, and each attempt. " +
			"With -o yaml or -o json it prints the recordings, with headers and bodies of the HTTP requests.",
		Example: "  kubectl chat debug triage\n  kubectl chat debug triage --step 2\n  kubectl chat debug triage --step 2 " +
			"-o yaml",
		Args: cobra.ExactArgs(1),
		RunE: o.connected(func(ctx context.Context, s *session, args []string) error {
			return showRecordings(ctx, s, args[0], number)
		}, render.FormatJSON, render.FormatYAML),
	}
	cmd.Flags().IntVar(&number, "step", 0, "number of the model call to show, as in the list")
	return cmd
}

func showRecordings(ctx context.Context, s *session, chat string, number int) error {
	steps, err := recordings(ctx, s.Objects, chat)
	switch {
	case err != nil:
		return err
	case len(steps) == 0:
		fmt.Fprintf(s.ErrOut,
			"No model call of chat %s is recorded. To record the next ones:\n  kubectl patch chat %s --namespace %s --type "+
				"merge --patch '{\"spec\":{\"debug\":{\"enabled\":true}}}'\n", chat, chat, s.Namespace)
		return nil
	case number < 0 || number > len(steps):
		return fmt.Errorf("chat %s has no recorded model call %d: there are 1 to %d", chat, number, len(steps))
	case s.Format != "" && number > 0:
		return render.PrintAll(&s.Output, steps[number-1:number])
	case s.Format != "":
		return render.PrintAll(&s.Output, steps)
	case number > 0:
		render.PrintRecording(s.Out, &steps[number-1])
		fmt.Fprintf(s.ErrOut, "[headers and bodies: %s]\n",
			s.command("debug", chat, "--step", strconv.Itoa(number), "-o", "yaml"))
		return nil
	}
	return render.PrintRecordings(s.Out, steps)
}

func recordings(ctx context.Context, o cluster.Objects, chat string) ([]v1beta1.ChatDebugStep, error) {
	if err := o.CheckChat(ctx, chat); err != nil {
		return nil, err
	}
	var all []v1beta1.ChatDebugStep
	err := cluster.Each(ctx, metav1.ListOptions{FieldSelector: "chatRef.name=" + chat, Limit: debugPage},
		o.Client.DebugSteps(o.Namespace).List, func(s *v1beta1.ChatDebugStep) { all = append(all, *s) })
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("reading recordings needs the ClusterRole parley-debug-viewer: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("listing the recordings of chat %s: %w", chat, err)
	}
	slices.SortFunc(all, func(a, b v1beta1.ChatDebugStep) int {
		if by := a.StartedAt.Compare(b.StartedAt.Time); by != 0 {
			return by
		}
		return strings.Compare(a.Name, b.Name)
	})
	return render.InTurns(all), nil
}
