// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiclient is a typed client of Parley's resources on client-go, for the programs without controller-runtime:
// generator, gateway and kubectl-chat. The API server's priority and fairness limits the rate of requests, and nothing
// here does.
package apiclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/startup"
)

// Scheme holds Parley's kinds and the meta kinds that every API server speaks.
var Scheme = newScheme()

var parameters = runtime.NewParameterCodec(Scheme)

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		panic(fmt.Sprintf("registering Parley's kinds: %v", err)) // Cannot happen: the kinds are constants.
	}
	return scheme
}

// Client reaches Parley's resources.
type Client struct {
	rest rest.Interface
}

// New returns a client for the API server that cfg names. userAgent names the program in the API server's logs.
func New(cfg *rest.Config, userAgent string) (*Client, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	cfg.Wrap(startup.Transport)
	cfg.UserAgent = userAgent
	cfg.APIPath = "/apis"
	cfg.GroupVersion = &v1beta1.GroupVersion
	cfg.ContentType = runtime.ContentTypeJSON
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(Scheme).WithoutConversion()
	c, err := rest.RESTClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating a client of %s: %w", v1beta1.GroupVersion, err)
	}
	return &Client{rest: c}, nil
}

// InCluster returns a copy of cfg for a program that runs in the API server's own network. It uses no proxy of the
// environment, but keeps the one that a kubeconfig names. Nor does it ask for compressed answers: the API server would
// compress each event of a watch on its own. kube-controller-manager and kube-scheduler ask for none either.
func InCluster(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.DisableCompression = true
	if cfg.Proxy == nil {
		cfg.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	}
	return cfg
}

// Chats of a namespace; of all namespaces if it is empty.
func (c *Client) Chats(namespace string) Resource[v1beta1.Chat, v1beta1.ChatList] {
	return Resource[v1beta1.Chat, v1beta1.ChatList]{c.rest, "chats", namespace}
}

// Messages of a namespace; of all namespaces if it is empty.
func (c *Client) Messages(namespace string) Resource[v1beta1.ChatMessage, v1beta1.ChatMessageList] {
	return Resource[v1beta1.ChatMessage, v1beta1.ChatMessageList]{c.rest, "chatmessages", namespace}
}

// Approvals of a namespace; of all namespaces if it is empty.
func (c *Client) Approvals(namespace string) Resource[v1beta1.ToolApproval, v1beta1.ToolApprovalList] {
	return Resource[v1beta1.ToolApproval, v1beta1.ToolApprovalList]{c.rest, "toolapprovals", namespace}
}

// ModelConfigs of a namespace; of all namespaces if it is empty.
func (c *Client) ModelConfigs(namespace string) Resource[v1beta1.ChatModelConfig, v1beta1.ChatModelConfigList] {
	return Resource[v1beta1.ChatModelConfig, v1beta1.ChatModelConfigList]{c.rest, "chatmodelconfigs", namespace}
}

// Classes are the ChatClasses of a namespace; of all namespaces if it is empty.
func (c *Client) Classes(namespace string) Resource[v1beta1.ChatClass, v1beta1.ChatClassList] {
	return Resource[v1beta1.ChatClass, v1beta1.ChatClassList]{c.rest, "chatclasses", namespace}
}

// Quotas are the ChatQuotas of a namespace; of all namespaces if it is empty.
func (c *Client) Quotas(namespace string) Resource[v1beta1.ChatQuota, v1beta1.ChatQuotaList] {
	return Resource[v1beta1.ChatQuota, v1beta1.ChatQuotaList]{c.rest, "chatquotas", namespace}
}

// DebugSteps of a namespace; of all namespaces if it is empty.
func (c *Client) DebugSteps(namespace string) Resource[v1beta1.ChatDebugStep, v1beta1.ChatDebugStepList] {
	return Resource[v1beta1.ChatDebugStep, v1beta1.ChatDebugStepList]{c.rest, "chatdebugsteps", namespace}
}

// Workspaces of a namespace; of all namespaces if it is empty.
func (c *Client) Workspaces(namespace string) Resource[v1beta1.Workspace, v1beta1.WorkspaceList] {
	return Resource[v1beta1.Workspace, v1beta1.WorkspaceList]{c.rest, "workspaces", namespace}
}

// Resource is one kind in one namespace. Errors are the API server's own (package apierrors tells them apart).
type Resource[T, L any] struct {
	rest      rest.Interface
	name      string
	namespace string
}

// Get reads an object by name.
func (r Resource[T, L]) Get(ctx context.Context, name string) (*T, error) {
	return r.into(ctx, r.on(r.rest.Get()).Name(name))
}

// GetCached reads an object by name from the API server's watch cache. That spares etcd, and takes half the time. The
// object may be older than the newest write, and one that was just created may be missing.
func (r Resource[T, L]) GetCached(ctx context.Context, name string) (*T, error) {
	return r.into(ctx, r.on(r.rest.Get()).Name(name).VersionedParams(&metav1.GetOptions{ResourceVersion: "0"}, parameters))
}

// Create creates an object and returns it as it is stored.
func (r Resource[T, L]) Create(ctx context.Context, in *T) (*T, error) {
	return r.into(ctx, r.on(r.rest.Post()).Body(object(in)))
}

// DryRunCreate has the API server check an object as for Create. It stores nothing.
func (r Resource[T, L]) DryRunCreate(ctx context.Context, in *T) (*T, error) {
	return r.into(ctx, r.on(r.rest.Post()).VersionedParams(&metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}},
		parameters).Body(object(in)))
}

// Update replaces an object, if it still has the resourceVersion of in, and returns it as it is stored.
func (r Resource[T, L]) Update(ctx context.Context, in *T) (*T, error) {
	accessor, err := meta.Accessor(in)
	if err != nil {
		return nil, fmt.Errorf("reading the name of %s to update: %w", r.name, err)
	}
	return r.into(ctx, r.on(r.rest.Put()).Name(accessor.GetName()).Body(object(in)))
}

// MergePatch changes the fields of an object that the patch holds, and returns the object as it is stored. The patch is
// encoded as JSON.
func (r Resource[T, L]) MergePatch(ctx context.Context, name string, patch any) (*T, error) {
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encoding the change of %s %s: %w", r.name, name, err)
	}
	return r.into(ctx, r.on(r.rest.Patch(types.MergePatchType)).Name(name).Body(body))
}

// JSONPatch applies a JSON patch to an object, or to a subresource of it. An operation "test" that does not hold makes
// it fail.
func (r Resource[T, L]) JSONPatch(ctx context.Context, name string, patch any, subresource ...string) (*T, error) {
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encoding the change of %s %s: %w", r.name, name, err)
	}
	return r.into(ctx, r.on(r.rest.Patch(types.JSONPatchType)).Name(name).SubResource(subresource...).Body(body))
}

// Delete deletes an object.
func (r Resource[T, L]) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	return r.on(r.rest.Delete()).Name(name).Body(&options).Do(ctx).Error()
}

// List reads the objects that the options select, such as by metav1.ListOptions.FieldSelector.
func (r Resource[T, L]) List(ctx context.Context, options metav1.ListOptions) (*L, error) {
	out := new(L)
	err := r.on(r.rest.Get()).VersionedParams(&options, parameters).Do(ctx).Into(object(out))
	return out, err
}

// EachOfPage reads a page of the objects that the options select, one at a time: a page of large objects takes the
// memory of one. It returns the token of the next page, which is empty after the last one.
func (r Resource[T, L]) EachOfPage(ctx context.Context, options metav1.ListOptions, visit func(*T)) (next string,
	err error) {
	body, err := r.on(r.rest.Get()).VersionedParams(&options, parameters).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }() // It is only read.
	if next, err = eachItem(json.NewDecoder(body), visit); err != nil {
		return "", fmt.Errorf("reading a list of %s: %w", r.name, err)
	}
	return next, nil
}

// eachItem decodes a list, and returns its token of the next page.
func eachItem[T any](list *json.Decoder, visit func(*T)) (next string, err error) {
	var metadata metav1.ListMeta
	_, err = list.Token() // {
	for err == nil && list.More() {
		var field json.Token
		if field, err = list.Token(); err != nil {
			break
		}
		switch field {
		case "items":
			err = eachElement(list, visit)
		case "metadata":
			err = list.Decode(&metadata)
		default:
			err = list.Decode(new(json.RawMessage))
		}
	}
	if err == nil {
		_, err = list.Token() // A list that is cut has no }.
	}
	return metadata.Continue, err
}

func eachElement[T any](list *json.Decoder, visit func(*T)) error {
	if _, err := list.Token(); err != nil { // [
		return err
	}
	for list.More() {
		item := new(T)
		if err := list.Decode(item); err != nil {
			return err
		}
		visit(item)
	}
	_, err := list.Token() // ]
	return err
}

// Watch follows the objects that the options select.
func (r Resource[T, L]) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return r.on(r.rest.Get()).VersionedParams(&options, parameters).Watch(ctx)
}

func (r Resource[T, L]) on(request *rest.Request) *rest.Request {
	return request.NamespaceIfScoped(r.namespace, r.namespace != "").Resource(r.name)
}

func (r Resource[T, L]) into(ctx context.Context, request *rest.Request) (*T, error) {
	out := new(T)
	err := request.Do(ctx).Into(object(out))
	return out, err
}

// ListerWatcher is the source of an informer over the objects that the field selector selects; all, if it is empty.
func (r Resource[T, L]) ListerWatcher(fieldSelector string) cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = fieldSelector
			list, err := r.List(ctx, options)
			return object(list), err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = fieldSelector
			return r.Watch(ctx, options)
		},
	}
}

// object is the same pointer as the interface that all kinds of the scheme implement.
func object(o any) runtime.Object { return o.(runtime.Object) }
