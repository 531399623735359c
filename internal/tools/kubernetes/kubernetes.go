// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubernetes has the tools with which a model reads and changes objects of the cluster. Each request is made as
// the service account that the chat names, and the API server decides what that may do. Nothing that comes from it
// reaches a model or a person before the values of Secrets are out of it: see withoutValues.
package kubernetes

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/kube/kubeapi"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

// Tools are all of them. The client is that of the API server.
func Tools(client *kubeapi.Client) []tools.Tool {
	c := &common{client: client}
	return []tools.Tool{get{c}, list{c}, describe{c}, logs{c}, events{c}, apply{c}, remove{c}}
}

const (
	// offered says to which chats the tools are offered that read.
	offered = "chats with `spec.kubernetes`"
	// offeredChanges says to which those are that change something.
	offeredChanges = "chats whose `spec.kubernetes.changes` is `WithApproval` or `WithoutApproval`"
)

// common is what the tools share.
type common struct{ client *kubeapi.Client }

var (
	// reading are the traits of tools that change nothing.
	reading = tools.Traits{Plan: tools.Free, Explore: tools.Free, Repeatable: true,
		EnabledFor: func(chat *v1alpha1.Chat) bool { return chat.Spec.Kubernetes != nil }}
	// changing are those of tools that change something. A person approves what is known of the change. A call that is
	// made again looks first whether it has been done.
	changing = tools.Traits{Repeatable: true, OwnsApproval: true,
		EnabledFor: func(chat *v1alpha1.Chat) bool { return chat.Spec.Kubernetes.MayChange() }}
)

// access is the cluster as the service account of a chat.
type access struct {
	client *kubeapi.Client
	call   tools.Call
	// account and namespace are the chat's.
	account, namespace string
}

// begin decodes the arguments of a call that has not ended yet.
func (c *common) begin(ctx context.Context, call tools.Call, schema arguments.Schema, into any) (*access, error) {
	if err := arguments.Decode(schema, call.Input, into); err != nil {
		return nil, err
	}
	return c.as(ctx, call)
}

func (c *common) as(ctx context.Context, call tools.Call) (*access, error) {
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case call.Chat.Spec.Kubernetes == nil:
		return nil, errors.New("this chat names no service account: spec.kubernetes does not let it into the cluster")
	}
	return &access{client: c.client, call: call, account: call.Chat.Spec.Kubernetes.ServiceAccountName,
		namespace: call.Chat.Namespace}, nil
}

// do makes a request. The error is for the model, and holds the API server's own.
func (a *access) do(ctx context.Context, r kubeapi.Request) ([]byte, error) {
	if a.call.Alive != nil {
		a.call.Alive()
	}
	answer, err := a.client.Do(ctx, a.account, r)
	return answer, a.told(ctx, err)
}

// find finds a kind by the name that the model gives.
func (a *access) find(ctx context.Context, name string) (*kubeapi.Kind, error) {
	kind, err := a.client.Find(ctx, a.account, name)
	return kind, a.told(ctx, err)
}

// within is the namespace that is asked about: that of the chat by default.
func (a *access) within(kind *kubeapi.Kind, namespace string) string {
	switch {
	case !kind.Namespaced:
		return ""
	case namespace == "":
		return a.namespace
	}
	return namespace
}

// maxWords is how many characters are told of an error.
const maxWords = 2 << 10

// refusedError is an error in words for a model. It holds what it was.
type refusedError struct {
	words string
	err   error
}

// Error is what the model reads.
func (e *refusedError) Error() string { return e.words }

// Unwrap is the API server's error.
func (e *refusedError) Unwrap() error { return e.err }

// told is an error in words for the model.
func (a *access) told(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	words := err.Error()
	if _, ok := errors.AsType[*kubeapi.NoTokenError](err); ok {
		// What the API server says is about the account, and must not be taken for an answer about an object.
		return errors.New(clip.Ellipsis(printable.Line(noToken(a.namespace, a.account, err)), maxWords))
	}
	if apierrors.IsUnauthorized(err) {
		words = fmt.Sprintf("the API server does not take the token of service account %s: does it still exist?", a.account)
	}
	return &refusedError{words: clip.Ellipsis(printable.Line(words), maxWords), err: err}
}

// noToken is why there is no token of the account, and what to do.
func noToken(namespace, account string, err error) string {
	if apierrors.IsForbidden(err) {
		return noGrant(namespace, account)
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		err = status
	}
	return fmt.Sprintf("nothing was asked, because there is no token of service account %s: %v", account, err)
}

// maxMessage is how many characters KubernetesUnavailable.message has.
const maxMessage = 1024

// Unavailable is why the chat's model cannot work in the cluster; nil if it can, or is not to.
func Unavailable(ctx context.Context, client *kubeapi.Client, chat *v1alpha1.Chat) *v1alpha1.KubernetesUnavailable {
	if chat.Spec.Kubernetes == nil {
		return nil
	}
	account := chat.Spec.Kubernetes.ServiceAccountName
	err := client.Check(ctx, account)
	if err == nil || ctx.Err() != nil {
		return nil
	}
	why := &v1alpha1.KubernetesUnavailable{Reason: v1alpha1.KubernetesTokenFailed,
		Message: clip.Ellipsis(printable.Line(noToken(chat.Namespace, account, err)), maxMessage)}
	if apierrors.IsForbidden(err) {
		why.Reason = v1alpha1.KubernetesTokenForbidden
	}
	return why
}

// noGrant says what people have to do so that generation pods get tokens of the account.
func noGrant(namespace, account string) string {
	role := "parley-token-" + account
	return fmt.Sprintf("nothing was asked, because the generation pods of namespace %[1]s may not have tokens of service "+
		"account %[2]s. Who administers the namespace lets them by: kubectl create role %[3]s -n %[1]s --verb=create "+
		"--resource=serviceaccounts/token --resource-name=%[2]s && kubectl create rolebinding %[3]s -n %[1]s --role=%[3]s "+
		"--serviceaccount=%[1]s:parley-generation", namespace, account, role)
}

// The arguments that name an object.
const maxName = 253

func resourceArgument() arguments.Schema {
	return arguments.Text(1, maxName, "The kind, as kubectl takes it: pods, deploy, deployments.apps, Ingress.")
}

func nameArgument() arguments.Schema { return arguments.Text(1, maxName, "The name of the object.") }

func namespaceArgument() arguments.Schema {
	return arguments.Text(1, maxName, "The namespace. Default: that of this chat.")
}

// commonErrors are those of all the tools.
var commonErrors = []string{
	"The API server refuses the request, such as for what the service account may not do: in its own words.",
	"The namespace does not let its generation pods have tokens of the service account: with the commands that do.",
	"There is no kind of that name, or the request would name a path.",
	"The API server answers with more than 8 MiB.",
}
