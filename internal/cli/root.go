// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli is the kubectl plug-in: kubectl chat with its verbs. It reaches the gateway through the API
// server, with the identity of the kubeconfig, so that whoever may use kubectl in a namespace needs nothing else. Every
// verb but send and tail does what kubectl could do to the resources, and waits for what becomes of it.
package cli

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"parley.dev/parley/internal/kube/apiclient"
)

// options are what all commands share.
type options struct {
	genericiooptions.IOStreams
	config *genericclioptions.ConfigFlags

	gateway          string
	insecure         bool
	gatewayCA        string
	gatewayNamespace string
	serviceAccount   string
	output           string
}

// NewCommand returns the plug-in's command.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	streams.Out, streams.ErrOut = newScreen(streams.Out), newScreen(streams.ErrOut)
	o := &options{IOStreams: streams, config: genericclioptions.NewConfigFlags(true)}
	root := &cobra.Command{
		Use:           "kubectl-chat",
		Short:         "Talk to Parley's chats",
		SilenceUsage:  true,
		SilenceErrors: true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl chat"},
	}
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	// kubectl's own --token is the identity for the gateway too.
	flags := root.PersistentFlags()
	o.config.AddFlags(flags)
	flags.StringVar(&o.gateway, "gateway", "",
		"URL of the gateway; default: $PARLEY_GATEWAY, else a port-forward to one of its pods")
	flags.BoolVar(&o.insecure, "insecure-gateway", false,
		"show the token to a gateway over plain HTTP, where others can read it on the way")
	flags.StringVar(&o.gatewayCA, "gateway-ca", "",
		"PEM file with the CA of the gateway's certificate; the port-forward then speaks TLS")
	flags.StringVar(&o.gatewayNamespace, "gateway-namespace", "parley-system", "namespace of the gateway")
	flags.StringVar(&o.serviceAccount, "service-account", "",
		"the service account to be known as to the gateway, whose token is asked for; default: the kubeconfig's own identity")
	flags.StringVarP(&o.output, "output", "o", "",
		"json: print the events as they come, or the object that came of the request, one JSON object a line; "+
			"yaml, name and wide for verbs that have them")
	root.AddCommand(newNew(o), newLs(o), newShow(o), newSend(o), newTail(o), newEdit(o), newDelete(o), newSuspend(o),
		newResume(o), newArchive(o), newUnarchive(o), newInterrupt(o), newPromote(o), newClear(o), newCompact(o),
		newTitle(o), newRefreshContext(o), newCalls(o), newApprove(o), newDeny(o), newAnswer(o), newSettings(o),
		newUsage(o), newExport(o), newImport(o), newDebug(o), newUI(o),
		newVersion(o))
	acceptTypedNames(root)
	o.addCompletion(root)
	return root
}

// session is what a verb works with on one cluster.
type session struct {
	options *options
	objects objects
	gateway *dialer
}

// connect connects for a verb that has those outputs besides what it prints for people.
func (o *options) connect(outputs ...string) (*session, error) {
	if err := o.checkOutput(outputs...); err != nil {
		return nil, err
	}
	cfg, err := o.config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return o.session(cfg)
}

// session connects to a cluster.
func (o *options) session(cfg *rest.Config) (*session, error) {
	namespace, _, err := o.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	core, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	s := &session{options: o, objects: objects{namespace: namespace},
		gateway: &dialer{options: o, namespace: namespace, rest: cfg, core: core}}
	if s.objects.client, err = apiclient.New(cfg, "kubectl-chat"); err != nil {
		return nil, err
	}
	return s, nil
}

// command is how a person calls a verb of this plug-in again, for the same cluster and namespace as far as flags said
// so.
func (o *options) command(words ...string) string {
	out := []string{"kubectl", "chat"}
	for _, flag := range []struct {
		name  string
		value *string
	}{{"--kubeconfig", o.config.KubeConfig}, {"--context", o.config.Context},
		{"--namespace", o.config.Namespace}} {
		if flag.value != nil && *flag.value != "" {
			out = append(out, flag.name, shellWord(*flag.value))
		}
	}
	for _, word := range words {
		out = append(out, shellWord(word))
	}
	return strings.Join(out, " ")
}

// shellWord quotes a word if a shell would not take it as it is.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return r < 128 && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_./:=@", r))
	}
	if word != "" && strings.TrimFunc(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
