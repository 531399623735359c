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
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/text/jsonschema"
)

type newOptions struct {
	class, model, title, mode        string
	system, workspace, schema, based string
	tools                            []string
	labels                           map[string]string
	files                            []string
	noFollow, storage                bool
	timeout                          time.Duration
}

func newNew(o *options) *cobra.Command {
	var no newOptions
	cmd := &cobra.Command{
		Use:   "new [NAME [TEXT...]]",
		Short: "Create a chat and show the first reply",
		Long: "Creates a Chat. With a TEXT it starts at once, and the reply is shown as with send. If TEXT ends " +
			"with the word -, standard input follows. Without a TEXT the chat waits for a message. If NAME ends " +
			"with a hyphen, the API server completes it; without a NAME it completes chat-.",
		Example: "  kubectl chat new triage \"Why does node-7 not get ready?\"\n  kubectl chat new review- --class " +
			"reviewer --label team=blue - < change.diff\n  kubectl chat new fix --workspace go --tool 'read_*' " +
			"--system \"You look and change nothing.\"\n  kubectl chat new -f chat.yaml",
		SuggestFor: []string{"create"},
		Args:       cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			chat, err := no.chat(o, args)
			if err != nil {
				return err
			}
			s, err := o.connect(outputsOf(no.noFollow || !no.asks(chat))...)
			if err != nil {
				return err
			}
			return createChat(cmd.Context(), s, chat, no, func() {})
		},
	}
	no.addFlags(cmd)
	no.addSpecFlags(cmd)
	no.addFollowFlag(cmd)
	return cmd
}

func (no *newOptions) addFollowFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&no.noFollow, "no-follow", false, "do not wait for the reply; print the chat's name")
}

// addSpecFlags adds flags that describe a new conversation.
func (no *newOptions) addSpecFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&no.system, "system", "", "the system prompt")
	flags.StringVar(&no.workspace, "workspace", "",
		"the PodTemplate of the workspace; completion lists those of the namespace")
	flags.BoolVar(&no.storage, "workspace-storage", false,
		"keep the files of the workspace in a volume: they last while it is stopped, and a fork can have a copy")
	flags.StringSliceVar(&no.tools, "tool", nil, "a tool that the model may use, or a pattern such as read_*")
	flags.StringVar(&no.schema, "output-schema", "", "file with the JSON Schema that the answer must match")
	flags.StringVarP(&no.based, "filename", "f", "",
		"file with the Chat in YAML or JSON, - for standard input; arguments and other flags replace its fields")
}

func (no *newOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&no.class, "class", "", "the ChatClass; default: that of the namespace")
	flags.StringVar(&no.model, "model", "",
		"the ChatModelConfig that answers; default: that of the class or the namespace")
	flags.StringVar(&no.title, "title", "", "the title; default: what a model writes, or how the first message begins")
	flags.StringVar(&no.mode, "mode", "", "Plan or Explore: what the model may do; default: all")
	flags.StringToStringVar(&no.labels, "label", nil, "labels of the chat, KEY=VALUE")
	flags.StringArrayVar(&no.files, "file", nil,
		"a file to attach to the first message, of at most 3.5 MiB; it can be repeated")
	flags.DurationVar(&no.timeout, "timeout", time.Hour, "how long to wait for the reply")
}

func (no *newOptions) chat(o *options, args []string) (*v1beta1.Chat, error) {
	chat, err := no.base(o)
	if err != nil {
		return nil, err
	}
	words := args
	if len(args) > 0 && args[0] != "-" {
		no.name(chat, args[0])
		words = args[1:]
	}
	if chat.Name == "" && chat.GenerateName == "" {
		chat.GenerateName = generatedNamePrefix
	}
	if len(words) > 0 {
		if chat.Spec.Prompt, err = o.textOf(words); err != nil {
			return nil, err
		}
	}
	return chat, no.apply(chat)
}

// base returns the Chat of the file; an empty one without a file.
func (no *newOptions) base(o *options) (*v1beta1.Chat, error) {
	chat := &v1beta1.Chat{}
	if no.based == "" {
		return chat, nil
	}
	raw, err := readInput(o, no.based, maxImport)
	if err != nil {
		return nil, err
	}
	if err := yaml.UnmarshalStrict(raw, chat); err != nil {
		return nil, usageError{fmt.Errorf("%s has no Chat: %w", no.based, err)}
	}
	if chat.Kind != "" && chat.Kind != "Chat" {
		return nil, usageError{fmt.Errorf("%s has a %s: give a file with a Chat", no.based, chat.Kind)}
	}
	return chat, nil
}

// readInput reads a file, or standard input for "-", of at most so many bytes.
func readInput(o *options, file string, most int64) ([]byte, error) {
	from := o.In
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, usageError{err}
		}
		defer func() { _ = opened.Close() }()
		from = opened
	}
	raw, err := io.ReadAll(io.LimitReader(from, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", inputName(file), err)
	case int64(len(raw)) > most:
		return nil, usageError{fmt.Errorf("%s has more than %d bytes", inputName(file), most)}
	}
	return raw, nil
}

func inputName(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

// apply sets what the flags say.
func (no *newOptions) apply(chat *v1beta1.Chat) error {
	spec := &chat.Spec
	for _, field := range []struct {
		value string
		set   func(string)
	}{
		{no.title, func(v string) { spec.Title = v }},
		{no.class, func(v string) { spec.ChatClassName = v }},
		{no.mode, func(v string) { spec.Mode = v1beta1.ChatMode(v) }},
		{no.system, func(v string) { spec.SystemPrompt = v }},
		{no.model, func(v string) { spec.ModelConfigRef = &v1beta1.ModelConfigReference{Name: v} }},
		{no.workspace, func(v string) {
			spec.Workspace = no.workspaceOf(v)
		}},
	} {
		if field.value != "" {
			field.set(field.value)
		}
	}
	if len(no.tools) > 0 && spec.Tools == nil {
		spec.Tools = &v1beta1.ChatTools{}
	}
	for i, tool := range no.tools {
		spec.Tools.Allow = append(spec.Tools.Allow[:i:i], v1beta1.ToolPattern(tool))
	}
	for key, value := range no.labels {
		metav1.SetMetaDataLabel(&chat.ObjectMeta, key, value)
	}
	if no.schema == "" {
		return nil
	}
	schema, err := readSchema(no.schema)
	spec.Output = &v1beta1.OutputFormat{Schema: runtime.RawExtension{Raw: schema}}
	return err
}

// readSchema reads the schema of an answer, as JSON. It refuses one that would fail the turn.
func readSchema(file string) ([]byte, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, usageError{fmt.Errorf("reading the schema of the answer: %w", err)}
	}
	if raw, err = yaml.YAMLToJSON(raw); err == nil {
		_, _, err = jsonschema.CompileOutput(raw)
	}
	if err != nil {
		return nil, usageError{fmt.Errorf("the schema of the answer in %s cannot be used: %w", file, err)}
	}
	return raw, nil
}

func (no *newOptions) workspaceOf(template string) *v1beta1.WorkspaceSource {
	ref := &v1beta1.WorkspaceTemplateReference{Name: template}
	if no.storage {
		ref.Storage = &v1beta1.WorkspaceStorage{}
	}
	return &v1beta1.WorkspaceSource{PodTemplateRef: ref}
}

// generatedNamePrefix begins the names that the API server generates for chats.
const generatedNamePrefix = "chat-"

// name names the chat. A name that ends with a hyphen is the prefix of a generated one.
func (no *newOptions) name(chat *v1beta1.Chat, name string) {
	chat.Name, chat.GenerateName = name, ""
	if strings.HasSuffix(name, "-") {
		chat.Name, chat.GenerateName = "", name
	}
}

// named returns a chat without a prompt.
func (no *newOptions) named(name string) (*v1beta1.Chat, error) {
	chat := &v1beta1.Chat{}
	no.name(chat, name)
	return chat, no.apply(chat)
}

// asks reports whether the chat begins with a message.
func (no *newOptions) asks(chat *v1beta1.Chat) bool {
	return chat.Spec.Prompt != "" || len(no.files) > 0
}

// prepare reads the files, and refuses names of objects that do not exist, before the chat is created.
func (no *newOptions) prepare(ctx context.Context, s *session) ([]localFile, error) {
	files, err := readFiles(no.files)
	if err != nil {
		return nil, err
	}
	return files, no.check(ctx, s)
}

// check refuses names of objects that do not exist: the chat would wait for them.
func (no *newOptions) check(ctx context.Context, s *session) error {
	if no.storage && no.workspace == "" {
		return usageError{errors.New("--workspace-storage is for the workspace that --workspace names")}
	}
	if err := checkExists(ctx, s, "ChatClass", no.class, classes); err != nil {
		return err
	}
	if err := checkModel(ctx, s, no.model); err != nil {
		return err
	}
	return checkExists(ctx, s, "workspace template", no.workspace, templates)
}

// checkModel refuses the name of a ChatModelConfig that does not exist.
func checkModel(ctx context.Context, s *session, name string) error {
	return checkExists(ctx, s, "ChatModelConfig", name, modelConfigs)
}

// checkExists refuses the name of an object that does not exist. It accepts an empty name, and one of a caller who may
// not list the objects: the chat waits for them.
func checkExists(ctx context.Context, s *session, kind, name string, list finder) error {
	if name == "" {
		return nil
	}
	var names []string
	err := list(ctx, s, nil, func(found, _ string) { names = append(names, found) })
	switch {
	case apierrors.IsForbidden(err), slices.Contains(names, name),
		len(names) == apiclient.MaxTemplates: // There may be more.
		return nil
	case err != nil:
		return fmt.Errorf("looking for %s %s in namespace %s: %w", kind, name, s.Namespace, err)
	}
	return cli.NotFoundError(fmt.Sprintf("namespace %s has no %s %s: there is %s", s.Namespace, kind, name,
		cmp.Or(strings.Join(names, ", "), "none")))
}
