// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/apiclient"
)

const (
	putConfiguration = "putConfiguration"
	// maxConfigurations bounds the list of a kind.
	maxConfigurations = "500"
)

// configurationKinds are the kinds that configure chats, each with the ClusterRole that allows to change it.
var configurationKinds = []struct{ kind, resource, role string }{
	{"ChatModelConfig", "chatmodelconfigs", "parley-chat-admin"},
	{"ChatClass", "chatclasses", "parley-class-admin"},
	{"ChatQuota", "chatquotas", "parley-quota-admin"},
}

// Configurations is what configures the chats of a namespace.
type Configurations struct {
	Body struct {
		Kinds []ConfigurationKind `json:"kinds" doc:"The kinds, of which the caller may see some."`
	}
}

// ConfigurationKind is a kind with its objects.
type ConfigurationKind struct {
	Kind     string          `json:"kind" doc:"Its name."`
	Resource string          `json:"resource" doc:"Its name in paths."`
	Create   bool            `json:"create,omitempty" doc:"Whether the caller may create objects."`
	Refused  string          `json:"refused,omitempty" doc:"Why the objects are not listed."`
	More     bool            `json:"more,omitempty" doc:"Whether there are others, which are not listed."`
	Objects  []Configuration `json:"objects" doc:"The objects by name, at most 500."`
}

// Configuration is what a list shows of an object.
type Configuration struct {
	Name     string `json:"name" doc:"Its name."`
	Summary  string `json:"summary,omitempty" doc:"The model and its provider, or what the chats of a class are for."`
	Default  bool   `json:"default,omitempty" doc:"Whether chats use it that name none."`
	Disabled bool   `json:"disabled,omitempty" doc:"Whether it is disabled."`
	Ready    string `json:"ready,omitempty" doc:"The status of its condition Ready: True, False or Unknown."`
	Reason   string `json:"reason,omitempty" doc:"The reason of the condition."`
	Message  string `json:"message,omitempty" doc:"The message of the condition."`
}

// OfKind is the kind that a request is about.
type OfKind struct {
	Resource string `path:"resource" enum:"chatmodelconfigs,chatclasses,chatquotas" doc:"The kind, as its resource."`
}

// OfConfiguration is the object that a request is about.
type OfConfiguration struct {
	InNamespace
	OfKind

	Name string `path:"name" pattern:"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$" maxLength:"253" doc:"The name of the object."`
}

// PutConfiguration creates or changes an object.
type PutConfiguration struct {
	OfConfiguration

	DryRun bool `query:"dryRun" doc:"Whether the API server only checks it, with all policies, and stores nothing."`
	Body   struct {
		ResourceVersion string `json:"resourceVersion,omitempty" doc:"Of the object that is changed: if it was changed since, nothing happens (409). Default: an object is created."`
		Spec            Fields `json:"spec" doc:"All of its spec."`
	}
}

// AnyObject is an object as the API server has it.
type AnyObject struct {
	Body struct {
		Object Fields `json:"object" doc:"The object, without metadata.managedFields."`
		Update bool   `json:"update,omitempty" doc:"Whether the caller may change it. Only where it is read."`
	}
}

// SpecSchema is the schema of a spec.
type SpecSchema struct{ Body Fields }

// configurations are the operations on what chats are configured by.
type configurations struct{ api *api }

func (c configurations) register() {
	const all, one = "/namespaces/{namespace}/configurations", "/namespaces/{namespace}/configurations/{resource}/{name}"
	register(c.api, operation("listConfigurations", http.MethodGet, all, "List what configures chats",
		"ChatModelConfigs, ChatClasses and ChatQuotas that the caller may list.", http.StatusOK), c.list)
	register(c.api, operation("getConfiguration", http.MethodGet, one, "Read what configures chats", "",
		http.StatusOK), c.get)
	register(c.api, operation(putConfiguration, http.MethodPut, one, "Create or change what configures chats",
		"It replaces the spec, and keeps metadata.", http.StatusOK), c.put)
	register(c.api, operation("getConfigurationSchema", http.MethodGet, "/configurations/{resource}/schema",
		"Read the schema of a kind", "The OpenAPI v3 schema of its spec, as the API server publishes it.", http.StatusOK),
		c.schema)
}

func (c configurations) list(ctx context.Context, in *InNamespace) (*Configurations, error) {
	out := &Configurations{}
	for _, k := range configurationKinds {
		one := ConfigurationKind{Kind: k.kind, Resource: k.resource}
		one.Create = c.may(ctx, apiclient.ResourceAttributes{Resource: k.resource, Verb: "create",
			Namespace: in.Namespace})
		list, more, err := c.api.client.Configuration(in.Namespace, k.resource).List(ctx, maxConfigurations)
		var status apierrors.APIStatus
		if errors.As(err, &status) && status.Status().Code != http.StatusUnauthorized {
			one.Refused, err = status.Status().Message, nil
		}
		if err != nil {
			return nil, err
		}
		one.Objects, one.More = each(list, configurationOf), more
		out.Body.Kinds = append(out.Body.Kinds, one)
	}
	return out, nil
}

// may asks whether the caller may do something. If the review fails, the answer is yes: the API server decides about
// the write itself.
func (c configurations) may(ctx context.Context, what apiclient.ResourceAttributes) bool {
	allowed, err := c.api.client.Allowed(ctx, what)
	return allowed || err != nil
}

func (c configurations) get(ctx context.Context, in *OfConfiguration) (*AnyObject, error) {
	out, err := objectOf(c.api.client.Configuration(in.Namespace, in.Resource).Get(ctx, in.Name))
	if err == nil {
		out.Body.Update = c.may(ctx, apiclient.ResourceAttributes{Resource: in.Resource, Verb: "update",
			Namespace: in.Namespace, Name: in.Name})
	}
	return out, err
}

func configurationOf(o *apiclient.Configured) Configuration {
	c := Configuration{Name: o.Metadata.Name, Summary: o.Spec.Description, Default: o.Spec.Default,
		Disabled: o.Spec.Disabled}
	if o.Spec.Model != "" {
		c.Summary = o.Spec.Model + ", " + o.Spec.Provider
	}
	if ready := meta.FindStatusCondition(o.Status.Conditions, v1beta1.ConditionReady); ready != nil {
		c.Ready, c.Reason, c.Message = string(ready.Status), ready.Reason, ready.Message
	}
	return c
}

func (c configurations) put(ctx context.Context, in *PutConfiguration) (*AnyObject, error) {
	client := c.api.client.Configuration(in.Namespace, in.Resource)
	if in.Body.ResourceVersion == "" {
		object := map[string]any{"apiVersion": v1beta1.GroupVersion.String(), "kind": kindOf(in.Resource),
			"metadata": map[string]any{"name": in.Name, "namespace": in.Namespace}, "spec": in.Body.Spec}
		return objectOf(client.Create(ctx, object, in.DryRun))
	}
	object, err := client.Get(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return nil, errors.New("the API server's object has no metadata")
	}
	metadata["resourceVersion"], object["spec"] = in.Body.ResourceVersion, in.Body.Spec
	return objectOf(client.Update(ctx, in.Name, object, in.DryRun))
}

// objectOf is the answer with an object, without metadata.managedFields.
func objectOf(object map[string]any, err error) (*AnyObject, error) {
	if err != nil {
		return nil, err
	}
	if metadata, ok := object["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
	out := &AnyObject{}
	out.Body.Object = object
	return out, nil
}

func (c configurations) schema(ctx context.Context, in *OfKind) (*SpecSchema, error) {
	kind := kindOf(in.Resource)
	raw, err := c.api.client.SpecSchema(ctx, kind)
	if err != nil {
		return nil, err
	}
	if raw == nil {
		return nil, huma.Error404NotFound("the API server publishes no schema of " + kind)
	}
	out := &SpecSchema{}
	return out, json.Unmarshal(raw, &out.Body)
}

// kindOf is the kind with that resource, which the schema of OfKind has checked.
func kindOf(resource string) string {
	for _, k := range configurationKinds {
		if k.resource == resource {
			return k.kind
		}
	}
	return ""
}
