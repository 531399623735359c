// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package verbs is kubectl chat with its verbs.
package verbs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/kube/apiclient"
)

type options struct {
	render.Output

	config  *genericclioptions.ConfigFlags
	gateway cluster.GatewayOptions
}

// verbs holds the constructor of each command and the finders that complete its arguments, in their order.
var verbs = []struct {
	construct func(*options) *cobra.Command
	arguments []finder
}{
	{newAnswer, []finder{waitingChats, callsThat("=", render.NeedsResult, render.NeedsInput)}},
	{newArchives, nil},
	{newApprove, []finder{waitingChats, callsThat("", render.NeedsApproval, render.NeedsInput)}},
	{newCalls, []finder{openChats}},
	{newCp, nil},
	{newDebug, []finder{allChats}},
	{newDelete, []finder{allChats, messagesThat(anyMessage)}},
	{newDeny, []finder{waitingChats, callsThat("", render.NeedsApproval, render.NeedsInput)}},
	{newDiff, []finder{allChats}},
	{newDoctor, nil},
	{newEdit, []finder{openChats, messagesThat(isEditable)}},
	{newExport, []finder{allChats}},
	{newFork, []finder{allChats}},
	{newGet, []finder{allChats}},
	{newImport, nil},
	{newLs, nil},
	{newNew, nil},
	{newPromote, []finder{openChats, queuedMessages}},
	{newRedact, []finder{allChats}},
	{newRestore, nil},
	{newRun, nil},
	{newSearch, nil},
	{newSend, []finder{openChats}},
	{newSettings, []finder{allChats}},
	{newShare, []finder{allChats}},
	{newShow, []finder{allChats}},
	{newTail, []finder{openChats}},
	{newUI, []finder{openChats}},
	{newUsage, []finder{allChats}},
	{newVersion, nil},
}

// about is the help of kubectl chat. It has all exit codes.
const about = `Talk to AI models in chats, which are objects of the cluster. Begin with

  kubectl chat new hello "Who are you?"    create a chat, and show the reply
  kubectl chat send hello                  hold the conversation on the whole screen
  kubectl chat ls                          list the chats, and what they wait for

Where a verb takes the name of a chat or message it also takes TYPE/NAME, as -o name
prints it. For the id of a call, its beginning or end is enough. Messages go to
standard output, remarks about them to standard error. Verbs that send the chat a request
wait until it has acted, at most --timeout; with --wait=false they do not wait.

Output formats:

  -o json             one JSON object a line: the events of the stream for new, import, send, tail and show, the
                      resulting object for the other verbs
  -o yaml, -o name    the object that a verb creates, changes or reads

Exit codes:

  0     it is done; new and send: the message was answered
  1     the turn failed, the message was rejected, the chat refused, or another error occurred
  2     invalid command line, or not confirmed
  3     the object does not exist, or was deleted meanwhile
  4     forbidden, or invalid token
  5     the name is taken, or someone else changed the object meanwhile
  6     --timeout expired, or the API server or the gateway does not answer
  7     --timeout expired while calls wait for a person or a client
  8     the turn was interrupted
  130   ctrl-C`

// NewCommand returns the plug-in's command.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	streams.Out, streams.ErrOut = terminal.NewScreen(streams.Out), terminal.NewScreen(streams.ErrOut)
	o := &options{Output: render.Output{IOStreams: streams}, config: genericclioptions.NewConfigFlags(true)}
	root := &cobra.Command{
		Use:           "kubectl-chat",
		Short:         "Talk to AI models in chats of the cluster",
		Long:          about,
		SilenceUsage:  true,
		SilenceErrors: true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl chat"},
	}
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) {
		o.In = terminal.NewInput(cmd.Context(), o.In)
	}
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	o.addFlags(root.PersistentFlags())
	for _, verb := range verbs {
		add(o, root, verb.construct(o), verb.arguments)
	}
	for _, r := range requests {
		add(o, root, newRequest(o, r), []finder{openChats})
	}
	for _, f := range fields {
		add(o, root, newField(o, f), []finder{chatsThat(f.applies)})
	}
	completeFlags(o, root)
	group(root)
	return root
}

// groups have the verbs in the help, by what somebody wants to do.
var groups = []struct {
	title string
	verbs []string
}{
	{"Hold a conversation:", []string{"new", "run", "send", "show", "tail", "edit", "promote", "interrupt", "ui"}},
	{"Decide about tool calls:", []string{"calls", "approve", "deny", "answer"}},
	{"Work with the files of a workspace:", []string{"diff", "cp"}},
	{"Find chats and look into them:", []string{"ls", "get", "search", "settings", "usage", "debug"}},
	{"Change chats:", []string{"fork", "share", "title", "compact", "clear", "refresh-context", "suspend", "resume",
		"archive", "unarchive", "delete", "redact"}},
	{"Move and keep conversations:", []string{"export", "import", "archives", "restore"}},
	{"Look after the installation:", []string{"doctor", "version"}},
}

// group orders the verbs in the help, and names the flags of all verbs only there.
func group(root *cobra.Command) {
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, verb := range root.Commands() {
			if slices.Contains(g.verbs, verb.Name()) {
				verb.GroupID = g.title
			}
		}
	}
	const inherited = "Global Flags:\n{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}"
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), inherited, "Flags of all verbs: kubectl chat --help", 1))
}

// add adds a verb, which accepts TYPE/NAME in place of a name, as -o name prints it and kubectl accepts it.
func add(o *options, root, cmd *cobra.Command, arguments []finder) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		names, err := plainNames(cmd.Use, args)
		if err != nil {
			return err
		}
		return run(cmd, names)
	}
	if len(arguments) > 0 {
		cmd.ValidArgsFunction = completeArguments(o, arguments)
	}
	completeFlags(o, cmd)
	root.AddCommand(cmd)
}

// addFlags adds the flags of all commands. kubectl's own --token is the identity for the gateway too.
func (o *options) addFlags(flags *pflag.FlagSet) {
	o.config.AddFlags(flags)
	flags.StringVar(&o.gateway.URL, "gateway", "",
		"URL of the gateway; default: $PARLEY_GATEWAY, else a port-forward to one of its pods")
	flags.BoolVar(&o.gateway.Insecure, "insecure-gateway", false,
		"show the token to a gateway over plain HTTP, where others can read it on the way")
	flags.StringVar(&o.gateway.CA, "gateway-ca", "",
		"PEM file with the CA of the gateway's certificate; the port-forward then speaks TLS")
	flags.StringVar(&o.gateway.Namespace, "gateway-namespace", "parley-system", "namespace of the gateway")
	flags.StringVar(&o.gateway.ServiceAccount, "service-account", "",
		"the service account to be known as to the gateway, whose token is asked for; default: the kubeconfig's own identity")
	flags.StringVarP(&o.Format, "output", "o", "",
		"json: print the events as they come, or the object that came of the request, one JSON object a line; "+
			"yaml, name and wide for verbs that have them")
}

type session struct {
	*options
	cluster.Objects

	dialer *cluster.Dialer
}

var (
	// forms are the outputs of verbs that change an object, and tables those of verbs that list chats.
	forms  = []string{render.FormatName, render.FormatJSON, render.FormatYAML}
	tables = []string{render.FormatName, render.FormatWide, render.FormatJSON, render.FormatYAML}
)

// connected returns the RunE of a verb that needs a cluster and has those values of --output.
func (o *options) connected(run func(ctx context.Context, s *session, args []string) error, outputs ...string,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		s, err := o.connect(outputs...)
		if err != nil {
			return err
		}
		return run(cmd.Context(), s, args)
	}
}

// connect connects a verb that has those values of --output.
func (o *options) connect(outputs ...string) (*session, error) {
	if err := o.checkOutput(outputs...); err != nil {
		return nil, err
	}
	return o.connectWith(func(*rest.Config) {})
}

// checkOutput refuses an --output that the verb does not have.
func (o *options) checkOutput(outputs ...string) error {
	if o.Format == "" || slices.Contains(outputs, o.Format) {
		return nil
	}
	if len(outputs) == 0 {
		return usageError{fmt.Errorf("--output %q is not possible with this command line: leave it out", o.Format)}
	}
	known := strings.Join(outputs, " or ")
	if slices.Contains(outputs, render.FormatWide) {
		known += "; " + seeGet
	}
	return usageError{fmt.Errorf("--output %q is not known; it can be %s", o.Format, known)}
}

func (o *options) connectWith(change func(*rest.Config)) (*session, error) {
	cfg, err := o.config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	change(cfg)
	namespace, _, err := o.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	core, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	client, err := apiclient.New(cfg, "kubectl-chat")
	if err != nil {
		return nil, err
	}
	return &session{options: o, Objects: cluster.Objects{Namespace: namespace, Client: client},
		dialer: &cluster.Dialer{Options: o.gateway, Namespace: namespace, Config: cfg, Core: core}}, nil
}

// command returns the command line of a verb, with the flags of this call that select the cluster and namespace.
func (o *options) command(words ...string) string {
	line := []string{"kubectl", "chat"}
	for _, flag := range []struct {
		name  string
		value *string
	}{{"--kubeconfig", o.config.KubeConfig}, {"--context", o.config.Context}, {"--namespace", o.config.Namespace}} {
		if *flag.value != "" {
			line = append(line, flag.name, shellWord(*flag.value))
		}
	}
	for _, word := range words {
		line = append(line, shellWord(word))
	}
	return strings.Join(line, " ")
}

func shellWord(word string) string {
	plain := func(r rune) bool {
		return r < 128 && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_./:=@", r))
	}
	if word != "" && strings.TrimFunc(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Run runs the plug-in, prints its error, and returns the exit code.
func Run(ctx context.Context, streams genericiooptions.IOStreams, args []string) int {
	out := terminal.NewScreen(streams.Out)
	streams.Out = out
	cmd := NewCommand(streams) //nolint:contextcheck // Commands get theirs from ExecuteContext.
	cmd.SetArgs(args)
	cmd.InitDefaultCompletionCmd()
	if scripts, _, err := cmd.Find([]string{"completion"}); err == nil {
		scripts.Long += "\nThe scripts are for the command kubectl-chat. For kubectl chat, kubectl's own completion runs\n" +
			"the program " + completer + " in PATH: make that a link to kubectl-chat.\n"
	}
	started, prepare := false, cmd.PersistentPreRun
	cmd.PersistentPreRun = func(cmd *cobra.Command, args []string) {
		started = true
		prepare(cmd, args)
	}
	err := cmd.ExecuteContext(ctx)
	if err != nil && !started { // cobra refused it.
		err = usageError{err}
	}
	if err == nil {
		err = out.Err()
	}
	if err != nil {
		terminal.Complain(streams.ErrOut, err)
	}
	return exitCode(err)
}
