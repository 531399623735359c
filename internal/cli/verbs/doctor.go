// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/cli/doctor"
	"parley.dev/parley/internal/cli/render"
)

type doctorOptions struct {
	probe   bool
	bundle  string
	timeout time.Duration
}

func newDoctor(o *options) *cobra.Command {
	var do doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation, and collect a support archive",
		Long: "Checks resource definitions, admission policies, rights, versions, the manager and the gateway, and whether " +
			"the namespace has a model. It prints for each check what was found and what to do. A check that needs a right " +
			"which you do not have is not made. The code is 1 if a check failed; warnings do not change it. If Parley is in " +
			"another namespace than parley-system, name it with --gateway-namespace.",
		Example: "  kubectl chat doctor\n  kubectl chat doctor -n team-a --probe\n" +
			"  kubectl chat doctor -n team-a --bundle support.tar.gz",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.checkOutput(render.FormatJSON, render.FormatYAML); err != nil {
				return err
			}
			s, err := o.connectWith(func(cfg *rest.Config) { cfg.QPS = -1 })
			if err != nil {
				return err
			}
			return examine(cmd.Context(), s, do)
		},
	}
	cmd.Flags().BoolVar(&do.probe, "probe", false,
		"create a chat with a short prompt, wait for the reply, and delete the chat; this costs a few tokens")
	cmd.Flags().StringVar(&do.bundle, "bundle", "",
		"also write a support archive (.tar.gz) with the report, objects, events and logs, without content and keys")
	cmd.Flags().DurationVar(&do.timeout, "timeout", 2*time.Minute, "how long to wait for the reply")
	return cmd
}

func examine(ctx context.Context, s *session, do doctorOptions) error {
	if do.bundle != "" { // Before the probe, which costs time and tokens.
		if _, err := os.Lstat(do.bundle); err == nil {
			return fmt.Errorf("creating the support archive %s: the file exists: name another one, or remove it", do.bundle)
		}
	}
	var reply time.Duration
	var noReply error
	if do.probe { // First, since it has the pod started whose image and logs are of interest.
		reply, noReply = probe(ctx, s, do.timeout)
	}
	installation := cluster.Installation{Objects: s.Objects, Dialer: s.dialer}
	facts, err := installation.Facts(ctx, ownVersion().Version)
	if err != nil {
		return err
	}
	facts.Reply, facts.Errors["reply"] = reply, noReply
	report := doctor.Examine(facts)
	if s.Format == "" {
		render.PrintReport(s.Out, report)
	} else if err := s.Print(report); err != nil {
		return err
	}
	if do.bundle != "" {
		if err := writeBundle(ctx, s, do.bundle, installation, facts, report); err != nil {
			return err
		}
	}
	if failed := report.Count(doctor.Failed); failed > 0 {
		return fmt.Errorf("%s of %d failed", render.Plural(failed, "check"), len(report.Checks))
	}
	return nil
}

// writeBundle writes a support archive into a file that does not exist yet.
func writeBundle(ctx context.Context, s *session, name string, from cluster.Installation, facts *doctor.Facts,
	report *doctor.Report) (err error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("creating the support archive: %w", err)
	}
	missing, err := from.WriteArchive(ctx, file, facts, report)
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	fmt.Fprintf(s.ErrOut, "wrote support archive %s\n", name)
	if len(missing) > 0 {
		fmt.Fprintf(s.ErrOut, "%s could not be read: see errors.txt in the archive\n", render.Plural(len(missing), "part"))
	}
	return nil
}

// deleteTimeout is how long the deletion of the chat of a probe may take, also after ctrl-C.
const deleteTimeout = 10 * time.Second

// probe has a chat answered as those of people are, and returns how long that took.
func probe(ctx context.Context, s *session, timeout time.Duration) (took time.Duration, err error) {
	started := time.Now()
	chat, err := s.Chats().Create(ctx, &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{GenerateName: "parley-doctor-"},
		Spec: v1beta1.ChatSpec{Prompt: "Reply with OK."}})
	if err != nil {
		return 0, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTimeout)
		defer cancel()
		err = cmp.Or(err, s.Chats().Delete(ctx, chat.Name, metav1.DeleteOptions{}))
	}()
	o, silent := *s.options, *s
	silent.options, o.Out, o.ErrOut, o.Format = &o, io.Discard, io.Discard, ""
	err = ask(ctx, &silent, question{chat: chat.Name, first: true, timeout: timeout,
		ask: func(context.Context) (string, error) { return chat.Name + plan.PromptSuffix, nil }})
	return time.Since(started), err
}
