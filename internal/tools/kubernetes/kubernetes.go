// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubernetes has the tools with which a model reads and changes objects of the cluster. Each request acts as
// the service account that the chat names, and the API server authorizes it. The values of Secrets are removed from all
// that a model sees: see removeSecrets.
package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/kubeapi"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

// Tools returns all tools of the package.
func Tools(client *kubeapi.Client) []tools.Tool {
	return []tools.Tool{
		newTool(client, getDefinition, get), newTool(client, listDefinition, list),
		newTool(client, describeDefinition, describe), newTool(client, logsDefinition, logs),
		newTool(client, eventsDefinition, events), newTool(client, applyDefinition, apply),
		newTool(client, deleteDefinition, remove),
	}
}

const (
	// offered is to which chats the tools are offered that read, offeredChanges the others.
	offered        = "chats with `spec.kubernetes`"
	offeredChanges = "chats whose `spec.kubernetes.changes` is `WithApproval` or `WithoutApproval`"

	// maxName is the maximum length of the name of an object.
	maxName = 253
	// maxWords is how many characters of an error the model reads, maxMessage those of KubernetesUnavailable.message.
	maxWords, maxMessage = 2 << 10, 1024
)

var (
	// reading are the traits of tools that change nothing.
	reading = tools.Traits{Plan: tools.Free, Explore: tools.Free, Repeatable: true,
		EnabledFor: func(chat *v1beta1.Chat) bool { return chat.Spec.Kubernetes != nil }}
	// changing are those of the others. A person approves a dry run. A repeated call first looks whether it was done.
	changing = tools.Traits{Repeatable: true, OwnsApproval: true,
		EnabledFor: func(chat *v1beta1.Chat) bool { return chat.Spec.Kubernetes.MayChange() }}

	resourceArgument = arguments.Text(1, maxName,
		"The kind, as kubectl takes it: pods, deploy, deployments.apps, Ingress.")
	nameArgument      = arguments.Text(1, maxName, "The name of the object.")
	namespaceArgument = arguments.Text(1, maxName, "The namespace. Default: that of this chat.")

	// commonErrors are those of all the tools.
	commonErrors = []string{
		"The API server refuses the request, such as for what the service account may not do: in its own words.",
		"The namespace does not let its generation pods have tokens of the service account: with the commands that do.",
		"There is no kind of that name, or the request would name a path.",
		"The API server answers with more than 8 MiB.",
	}
)

// objectArguments name an object.
type objectArguments struct {
	Resource  string `json:"resource"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// access is the cluster as the service account of a chat.
type access struct {
	client *kubeapi.Client
	call   tools.Call
	// account and namespace are the chat's.
	account, namespace string
}

// newTool returns a tool that acts as the service account of the chat.
func newTool[A any](client *kubeapi.Client, d tools.Definition,
	run func(ctx context.Context, a *access, args A) (string, error)) tools.Tool {
	d.Reference.Errors = slices.Concat(commonErrors, d.Reference.Errors)
	return tools.New(d, func(ctx context.Context, call tools.Call, args A) (string, error) {
		spec := call.Chat.Spec.Kubernetes
		switch {
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case spec == nil:
			return "", errors.New("this chat names no service account: spec.kubernetes does not let it into the cluster")
		}
		return run(ctx, &access{client, call, spec.ServiceAccountName, call.Chat.Namespace}, args)
	})
}

// do sends a request. The error is an apiError.
func (a *access) do(ctx context.Context, r kubeapi.Request) ([]byte, error) {
	if a.call.Alive != nil {
		a.call.Alive()
	}
	answer, err := a.client.Do(ctx, a.account, r)
	return answer, a.describeError(ctx, err)
}

// target is an object of the cluster, which may not exist.
type target struct {
	kind            *kubeapi.Kind
	namespace, name string
}

// title names the object for people.
func (t target) title() string {
	if t.namespace == "" {
		return t.kind.Title() + " " + t.name
	}
	return t.kind.Title() + " " + t.name + " in namespace " + t.namespace
}

// wrap adds the object to an error.
func (t target) wrap(err error) error { return fmt.Errorf("%s: %w", t.title(), err) }

// find finds the kind of an object.
func (a *access) find(ctx context.Context, of objectArguments) (target, error) {
	kind, err := a.client.Find(ctx, a.account, of.Resource)
	if err != nil {
		return target{}, a.describeError(ctx, err)
	}
	return target{kind, a.namespaceOf(kind, of.Namespace), of.Name}, nil
}

// namespaceOf is the namespace of objects of the kind: that of the chat by default.
func (a *access) namespaceOf(kind *kubeapi.Kind, namespace string) string {
	if !kind.Namespaced {
		return ""
	}
	return cmp.Or(namespace, a.namespace)
}

// query has the parameters that are not empty.
func query(parameters map[string]string) url.Values {
	values := url.Values{}
	for name, value := range parameters {
		if value != "" {
			values.Set(name, value)
		}
	}
	return values
}

// apiError is an error of the API server in words for a model.
type apiError struct {
	words string
	err   error
}

// Error is what the model reads.
func (e *apiError) Error() string { return e.words }

// Unwrap is the API server's error.
func (e *apiError) Unwrap() error { return e.err }

// describeError puts an error into words for the model.
func (a *access) describeError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	words := err.Error()
	if _, ok := errors.AsType[*kubeapi.NoTokenError](err); ok {
		// The status is about the account. It must not look like one about an object.
		words, err = describeNoToken(a.namespace, a.account, err), nil
	} else if apierrors.IsUnauthorized(err) {
		words = fmt.Sprintf("the API server does not take the token of service account %s: does it still exist?", a.account)
	}
	return &apiError{clip.Ellipsis(printable.Line(words), maxWords), err}
}

// describeNoToken explains why there is no token of the account, and what to do.
func describeNoToken(namespace, account string, err error) string {
	if apierrors.IsForbidden(err) {
		return fmt.Sprintf("nothing was asked, because the generation pods of namespace %[1]s may not have tokens of "+
			"service account %[2]s. Who administers the namespace lets them by: "+
			"kubectl create role %[3]s -n %[1]s --verb=create "+
			"--resource=serviceaccounts/token --resource-name=%[2]s && kubectl create rolebinding %[3]s -n %[1]s --role=%[3]s "+
			"--serviceaccount=%[1]s:parley-generation", namespace, account, "parley-token-"+account)
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		err = status
	}
	return fmt.Sprintf("nothing was asked, because there is no token of service account %s: %v", account, err)
}

// Unavailable is why the chat's model has no access to the cluster; nil if it has, or is not to have it.
func Unavailable(ctx context.Context, client *kubeapi.Client, chat *v1beta1.Chat) *v1beta1.KubernetesUnavailable {
	if chat.Spec.Kubernetes == nil {
		return nil
	}
	account := chat.Spec.Kubernetes.ServiceAccountName
	err := client.Check(ctx, account)
	if err == nil || ctx.Err() != nil {
		return nil
	}
	why := &v1beta1.KubernetesUnavailable{Reason: v1beta1.KubernetesTokenFailed,
		Message: clip.Ellipsis(printable.Line(describeNoToken(chat.Namespace, account, err)), maxMessage)}
	if apierrors.IsForbidden(err) {
		why.Reason = v1beta1.KubernetesTokenForbidden
	}
	return why
}
