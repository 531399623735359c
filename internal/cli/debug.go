// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"parley.dev/parley/api/v1alpha1"
)

// debugPage is how many recordings are asked for at once: each may have half a MiB.
const debugPage = 20

func newDebug(o *options) *cobra.Command {
	var number int
	cmd := &cobra.Command{
		Use:   "debug CHAT",
		Short: "Show what was recorded of a chat's model calls",
		Long: "Lists the model calls that were recorded while debugging was on (spec.debug of the Chat or its " +
			"ChatModelConfig), turn by turn, or with --step shows one: " +
			"what the model was asked, what it answered, and each attempt. With -o yaml or -o json it prints the recordings, " +
			"headers and bodies of the HTTP requests included.",
		Example: "  kubectl chat debug triage\n  kubectl chat debug triage --step 2\n  kubectl chat debug triage --step 2 " +
			"-o yaml",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := o.connect(outJSON, outYAML)
			if err != nil {
				return err
			}
			return s.debug(cmd.Context(), args[0], number)
		},
	}
	cmd.Flags().IntVar(&number, "step", 0, "number of the model call to show, as in the list")
	return cmd
}

func (s *session) debug(ctx context.Context, chat string, number int) error {
	steps, err := s.objects.recordings(ctx, chat)
	if err != nil {
		return err
	}
	printer := recordingPrinter{s.options}
	switch {
	case len(steps) == 0:
		fmt.Fprintf(s.options.ErrOut,
			"No model call of chat %s is recorded. To record the next ones:\n  kubectl patch chat %s --namespace %s --type "+
				"merge --patch '{\"spec\":{\"debug\":{\"enabled\":true}}}'\n", chat, chat, s.objects.namespace)
		return nil
	case number < 0 || number > len(steps):
		return fmt.Errorf("chat %s has no recorded model call %d: there are 1 to %d", chat, number, len(steps))
	case s.options.output != "" && number > 0:
		return printer.printRaw(steps[number-1 : number])
	case s.options.output != "":
		return printer.printRaw(steps)
	case number > 0:
		printer.print(number, &steps[number-1])
		return nil
	}
	return printer.list(steps)
}

// recordings are those of a chat, turn by turn, oldest first.
func (o objects) recordings(ctx context.Context, chat string) ([]v1alpha1.ChatDebugStep, error) {
	if err := o.checkChat(ctx, chat); err != nil {
		return nil, err
	}
	var all []v1alpha1.ChatDebugStep
	err := eachPage(ctx, metav1.ListOptions{FieldSelector: "chatRef.name=" + chat, Limit: debugPage},
		o.client.DebugSteps(o.namespace).List,
		func(page *v1alpha1.ChatDebugStepList) { all = append(all, page.Items...) })
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("reading recordings needs the ClusterRole parley-debug-viewer: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("listing the recordings of chat %s: %w", chat, err)
	}
	slices.SortFunc(all, func(a, b v1alpha1.ChatDebugStep) int {
		if by := a.StartedAt.Compare(b.StartedAt.Time); by != 0 {
			return by
		}
		return strings.Compare(a.Name, b.Name)
	})
	return inTurns(all), nil
}

// recordingPrinter prints recordings of model calls.
type recordingPrinter struct{ options *options }

// printRaw prints the recordings as they are, one document or line each.
func (p recordingPrinter) printRaw(steps []v1alpha1.ChatDebugStep) error {
	for i := range steps {
		if i > 0 && p.options.output == outYAML {
			fmt.Fprintln(p.options.Out, "---")
		}
		if err := p.options.print(&steps[i]); err != nil {
			return err
		}
	}
	return nil
}

// list lists the recordings of each turn below a line about the turn, all in the same columns.
func (p recordingPrinter) list(steps []v1alpha1.ChatDebugStep) error {
	var rows strings.Builder
	table := printers.GetNewTabWriter(&rows)
	fmt.Fprintln(table, "STEP\tTIME\tACTION\tMODEL\tSTATUS\tREASON\tATTEMPTS\tTOOK\tTOKENS")
	for i := range steps {
		fmt.Fprintln(table, row(i+1, &steps[i].DebugRecording))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	lines := slices.Collect(strings.Lines(rows.String()))
	fmt.Fprint(p.options.Out, lines[0])
	lines = lines[1:]
	for _, t := range byTurn(steps) {
		if heading := t.heading(); heading != "" {
			fmt.Fprintln(p.options.Out, heading)
		}
		fmt.Fprint(p.options.Out, strings.Join(lines[:len(t.steps)], ""))
		lines = lines[len(t.steps):]
	}
	return nil
}

// row is a recording in the list.
func row(number int, r *v1alpha1.DebugRecording) string {
	reason, tokens := "<none>", "<none>"
	if r.Error != nil {
		reason = string(r.Error.Reason)
	}
	if r.Response != nil && r.Response.Usage.TotalTokens > 0 {
		tokens = strconv.FormatInt(r.Response.Usage.TotalTokens, 10)
	}
	return strings.Join([]string{
		strconv.Itoa(number), r.StartedAt.Local().Format(time.DateTime), string(r.Action), flat(r.Model.Name),
		string(r.State),
		reason, strconv.Itoa(int(r.Attempt)), took(r.StartedAt, r.FinishedAt), tokens,
	}, "\t")
}

// took is how long something took, if it is over.
func took(from metav1.MicroTime, until *metav1.MicroTime) string {
	if until == nil {
		return "<unknown>"
	}
	return until.Sub(from.Time).Round(time.Millisecond).String()
}
