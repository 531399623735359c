// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiclient is a typed client of Parley's resources on client-go, for the programs that do without
// controller-runtime: generator, gateway and kubectl-chat. It has no limit of its own on the rate of requests; the API
// server's priority and fairness has.
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

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/kube/startup"
)

// Scheme holds Parley's kinds and the meta kinds that every API server speaks.
var Scheme = newScheme()

var parameters = runtime.NewParameterCodec(Scheme)

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
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
	cfg.GroupVersion = &v1alpha1.GroupVersion
	cfg.ContentType = runtime.ContentTypeJSON
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(Scheme).WithoutConversion()
	c, err := rest.RESTClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating a client of %s: %w", v1alpha1.GroupVersion, err)
	}
	return &Client{rest: c}, nil
}

// WithoutProxy returns a copy of cfg that uses no proxy of the environment. It keeps the proxy that a kubeconfig names.
func WithoutProxy(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	if cfg.Proxy == nil {
		cfg.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	}
	return cfg
}

// Chats of a namespace; of all namespaces if it is empty.
func (c *Client) Chats(namespace string) Resource[v1alpha1.Chat, v1alpha1.ChatList] {
	return Resource[v1alpha1.Chat, v1alpha1.ChatList]{c.rest, "chats", namespace}
}

// Messages of a namespace; of all namespaces if it is empty.
func (c *Client) Messages(namespace string) Resource[v1alpha1.ChatMessage, v1alpha1.ChatMessageList] {
	return Resource[v1alpha1.ChatMessage, v1alpha1.ChatMessageList]{c.rest, "chatmessages", namespace}
}

// Approvals of a namespace; of all namespaces if it is empty.
func (c *Client) Approvals(namespace string) Resource[v1alpha1.ToolApproval, v1alpha1.ToolApprovalList] {
	return Resource[v1alpha1.ToolApproval, v1alpha1.ToolApprovalList]{c.rest, "toolapprovals", namespace}
}

// ModelConfigs of a namespace; of all namespaces if it is empty.
func (c *Client) ModelConfigs(namespace string) Resource[v1alpha1.ChatModelConfig, v1alpha1.ChatModelConfigList] {
	return Resource[v1alpha1.ChatModelConfig, v1alpha1.ChatModelConfigList]{c.rest, "chatmodelconfigs", namespace}
}

// Classes are the ChatClasses of a namespace; of all namespaces if it is empty.
func (c *Client) Classes(namespace string) Resource[v1alpha1.ChatClass, v1alpha1.ChatClassList] {
	return Resource[v1alpha1.ChatClass, v1alpha1.ChatClassList]{c.rest, "chatclasses", namespace}
}

// DebugSteps of a namespace; of all namespaces if it is empty.
func (c *Client) DebugSteps(namespace string) Resource[v1alpha1.ChatDebugStep, v1alpha1.ChatDebugStepList] {
	return Resource[v1alpha1.ChatDebugStep, v1alpha1.ChatDebugStepList]{c.rest, "chatdebugsteps", namespace}
}

// Workspaces of a namespace; of all namespaces if it is empty.
func (c *Client) Workspaces(namespace string) Resource[v1alpha1.Workspace, v1alpha1.WorkspaceList] {
	return Resource[v1alpha1.Workspace, v1alpha1.WorkspaceList]{c.rest, "workspaces", namespace}
}

// Resource is one kind in one namespace. Errors are the API server's own (package apierrors tells them apart).
type Resource[T, L any] struct {
	rest      rest.Interface
	name      string
	namespace string
}

// Get reads an object by name.
func (r Resource[T, L]) Get(ctx context.Context, name string) (*T, error) {
	out := new(T)
	err := r.rest.Get().NamespaceIfScoped(r.namespace, r.namespace != "").Resource(r.name).Name(name).Do(ctx).
		Into(object(out))
	return out, err
}

// GetCached reads an object by name as the API server's watch cache has it. That spares etcd, and half the time; what
// is read may be older than the newest write, and of an object that was just created there may be nothing.
func (r Resource[T, L]) GetCached(ctx context.Context, name string) (*T, error) {
	out := new(T)
	err := r.rest.Get().NamespaceIfScoped(r.namespace, r.namespace != "").Resource(r.name).Name(name).
		VersionedParams(&metav1.GetOptions{ResourceVersion: "0"}, parameters).Do(ctx).Into(object(out))
	return out, err
}

// Create creates an object and returns it as it is stored.
func (r Resource[T, L]) Create(ctx context.Context, in *T) (*T, error) {
	out := new(T)
	err := r.rest.Post().NamespaceIfScoped(r.namespace, r.namespace != "").Resource(r.name).Body(object(in)).Do(ctx).
		Into(object(out))
	return out, err
}

// Update replaces an object, if it is still the version that in names, and returns it as it is stored.
func (r Resource[T, L]) Update(ctx context.Context, in *T) (*T, error) {
	out := new(T)
	accessor, err := meta.Accessor(in)
	if err != nil {
		return nil, fmt.Errorf("reading the name of %s to update: %w", r.name, err)
	}
	err = r.rest.Put().NamespaceIfScoped(r.namespace, r.namespace != "").Resource(r.name).Name(accessor.GetName()).
		Body(object(in)).Do(ctx).Into(object(out))
	return out, err
}

// MergePatch changes the fields of an object that the patch holds, and returns the object as it is stored. The patch is
// encoded as JSON.
func (r Resource[T, L]) MergePatch(ctx context.Context, name string, patch any) (*T, error) {
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encoding the change of %s %s: %w", r.name, name, err)
	}
	out := new(T)
	err = r.rest.Patch(types.MergePatchType).NamespaceIfScoped(r.namespace, r.namespace != "").Resource(r.name).
		Name(name).Body(body).Do(ctx).Into(object(out))
	return out, err
}

// Delete deletes an object.
func (r Resource[T, L]) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	return r.rest.Delete().NamespaceIfScoped(r.namespace, r.namespace != "").Resource(r.name).Name(name).
		Body(&options).Do(ctx).Error()
}

// List reads the objects that the options select, such as by metav1.ListOptions.FieldSelector.
func (r Resource[T, L]) List(ctx context.Context, options metav1.ListOptions) (*L, error) {
	out := new(L)
	err := r.rest.Get().NamespaceIfScoped(r.namespace, r.namespace != "").Resource(r.name).
		VersionedParams(&options, parameters).Do(ctx).Into(object(out))
	return out, err
}

// Watch follows the objects that the options select.
func (r Resource[T, L]) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return r.rest.Get().NamespaceIfScoped(r.namespace, r.namespace != "").Resource(r.name).
		VersionedParams(&options, parameters).Watch(ctx)
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

// object is the same pointer as the interface that every kind of the scheme implements; the four constructors above are
// the only places that choose the type.
func object(o any) runtime.Object { return o.(runtime.Object) }

// answer is the body of an answer. Result.Raw alone would tell of an error its code, and not what the API server says.
func answer(r rest.Result) ([]byte, error) {
	if err := r.Error(); err != nil {
		return nil, err
	}
	return r.Raw()
}
