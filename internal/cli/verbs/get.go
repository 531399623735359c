// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"errors"

	"github.com/spf13/cobra"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/kubectl/pkg/cmd/get"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"parley.dev/parley/api/v1beta1"
)

// newGet is kubectl's own get for chats, with its outputs and selectors.
func newGet(o *options) *cobra.Command {
	of := get.NewGetOptions("kubectl chat", o.IOStreams)
	cmd := &cobra.Command{
		Use:   "get [CHAT...]",
		Short: "Print chats as kubectl get does, with its outputs, selectors and sorting",
		Long: "Does what kubectl get chats does. The columns, and the order of the list, are those of the API server. The " +
			"verb ls is made for people, and shows what each chat waits for.",
		Example: "  kubectl chat get -A --sort-by=.metadata.creationTimestamp --no-headers\n" +
			"  kubectl chat get triage -o jsonpath={.status.phase}",
		RunE: func(cmd *cobra.Command, args []string) error {
			chats := append([]string{"chats." + v1beta1.GroupVersion.Group}, args...)
			factory := cmdutil.NewFactory(o.config)
			if err := of.Complete(factory, cmd, chats); err != nil {
				return usageError{err}
			}
			if err := of.Validate(); err != nil {
				return usageError{err}
			}
			err := of.Run(factory, chats)
			if all, ok := err.(utilerrors.Aggregate); ok { //nolint:errorlint // It is as kubectl returns it.
				return errors.Join(utilerrors.Flatten(all).Errors()...) // This one shows the status, which selects the exit code.
			}
			return err // kubectl's own errors say what was being done.
		},
	}
	of.PrintFlags.AddFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVarP(&of.Watch, "watch", "w", false, "after the list, print what changes")
	flags.BoolVar(&of.WatchOnly, "watch-only", false, "print what changes, without the list")
	flags.BoolVarP(&of.AllNamespaces, "all-namespaces", "A", false, "print the chats of all namespaces")
	flags.BoolVar(&of.IgnoreNotFound, "ignore-not-found", false, "end without an error if a chat does not exist")
	flags.StringVar(&of.FieldSelector, "field-selector", "", "fields of the chats, such as status.root.name=triage")
	cmdutil.AddLabelSelectorFlagVar(cmd, &of.LabelSelector)
	return cmd
}
