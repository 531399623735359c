// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclient

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"parley.dev/parley/api/v1beta1"
)

// The kinds of Kubernetes have only the fields that programs need here. The kinds themselves would link in all others.

// ConfigMap is the content of a ConfigMap.
type ConfigMap struct {
	Data       map[string]string `json:"data"`
	BinaryData map[string][]byte `json:"binaryData"`
}

// Value returns the content of a key, and whether the key exists.
func (m *ConfigMap) Value(key string) ([]byte, bool) {
	if text, ok := m.Data[key]; ok {
		return []byte(text), true
	}
	value, ok := m.BinaryData[key]
	return value, ok
}

// ConfigMap reads a ConfigMap. Errors are the API server's own.
func (c *Client) ConfigMap(ctx context.Context, namespace, name string) (*ConfigMap, error) {
	out := &ConfigMap{}
	return out, decode(ctx, c.rest.Get().AbsPath("/api/v1/namespaces", namespace, "configmaps", name), out)
}

// CreateAny creates an object, in JSON, of any kind with namespaces. Errors are the API server's own.
func (c *Client) CreateAny(ctx context.Context, kind schema.GroupVersionResource, namespace string,
	object []byte) error {
	path := []string{"/apis", kind.Group, kind.Version}
	if kind.Group == "" {
		path = []string{"/api", kind.Version}
	}
	return c.rest.Post().AbsPath(append(path, "namespaces", namespace, kind.Resource)...).
		SetHeader("Content-Type", runtime.ContentTypeJSON).Body(object).Do(ctx).Error()
}

// IssuerKeys reads the JSON Web Key Set with which the cluster signs service-account tokens. By default every service
// account may read it.
func (c *Client) IssuerKeys(ctx context.Context) ([]byte, error) {
	set, err := c.rest.Get().AbsPath("/openid/v1/jwks").SetHeader("Accept", "application/jwk-set+json, application/json").
		DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the keys of the cluster's issuer: %w", err)
	}
	return set, nil
}

// ResourceAttributes are what somebody wants to do.
type ResourceAttributes struct {
	Group       string `json:"group"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	Verb        string `json:"verb"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
}

// Allowed asks whether the caller itself may do something with a resource of Parley. Errors are the API server's own.
func (c *Client) Allowed(ctx context.Context, what ResourceAttributes) (bool, error) {
	what.Group = v1beta1.GroupVersion.Group
	var review struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Spec       struct {
			ResourceAttributes ResourceAttributes `json:"resourceAttributes"`
		} `json:"spec"`
		Status struct {
			Allowed bool `json:"allowed"`
		} `json:"status"`
	}
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
	review.Spec.ResourceAttributes = what
	body, err := json.Marshal(review)
	if err != nil {
		return false, fmt.Errorf("encoding the access review: %w", err)
	}
	err = decode(ctx, c.rest.Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").
		SetHeader("Content-Type", "application/json").Body(body), &review)
	return review.Status.Allowed, err
}

// User is a caller as the API server knows it.
type User struct {
	Name   string   `json:"username"`
	Groups []string `json:"groups"`
}

// WhoAmI asks who the caller is. Errors are the API server's own.
func (c *Client) WhoAmI(ctx context.Context) (User, error) {
	var review struct {
		Status struct {
			User User `json:"userInfo"`
		} `json:"status"`
	}
	const question = `{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}`
	err := decode(ctx, c.rest.Post().AbsPath("/apis/authentication.k8s.io/v1/selfsubjectreviews").
		SetHeader("Content-Type", "application/json").Body([]byte(question)), &review)
	return review.Status.User, err
}

// namespacesAtOnce is how many namespaces one answer has at most.
const namespacesAtOnce = 500

// Namespaces returns the sorted names of at most so many namespaces, and whether there are more. Errors are the API
// server's own.
func (c *Client) Namespaces(ctx context.Context, most int) (names []string, more bool, err error) {
	next := ""
	for len(names) < most {
		request := c.rest.Get().AbsPath("/api/v1/namespaces").
			SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").
			Param("limit", strconv.Itoa(min(namespacesAtOnce, most-len(names))))
		if next != "" {
			request = request.Param("continue", next)
		}
		var page struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
			Items []struct {
				Metadata struct {
					Name string `json:"name"`
				} `json:"metadata"`
			} `json:"items"`
		}
		if err := decode(ctx, request, &page); err != nil {
			return nil, false, err
		}
		for _, item := range page.Items {
			names = append(names, item.Metadata.Name)
		}
		if next = page.Metadata.Continue; next == "" {
			break
		}
	}
	slices.Sort(names)
	return names, next != "", nil
}

// Template is a PodTemplate that workspaces are made from.
type Template struct {
	Name        string `json:"name" doc:"Its name."`
	Description string `json:"description,omitempty" doc:"What its workspaces have."`
}

// MaxTemplates bounds a list of templates.
const MaxTemplates = 500

// Templates returns the templates of workspaces of a namespace, by name, at most MaxTemplates. Errors are the API
// server's own.
func (c *Client) Templates(ctx context.Context, namespace string) ([]Template, error) {
	var page metav1.PartialObjectMetadataList
	err := decode(ctx, c.rest.Get().AbsPath("/api/v1/namespaces", namespace, "podtemplates").
		SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").
		Param("limit", strconv.Itoa(MaxTemplates)).Param("labelSelector", v1beta1.LabelWorkspaceTemplate+"=true"), &page)
	out := make([]Template, len(page.Items))
	for i := range page.Items {
		out[i] = Template{page.Items[i].Name, page.Items[i].Annotations[v1beta1.AnnotationDescription]}
	}
	return out, err
}

// TokenFor describes the token of a service account.
type TokenFor struct {
	Namespace, Account string
	// Pod and PodUID bind the token to a pod of the account: it ends with the pod. Empty: it is not bound.
	Pod, PodUID string
	// Seconds is how long it is valid; the API server grants at least 600.
	Seconds int64
}

// tokenRequest is authentication.k8s.io/v1 TokenRequest.
type tokenRequest struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		Audiences         []string     `json:"audiences,omitempty"`
		ExpirationSeconds int64        `json:"expirationSeconds"`
		BoundObjectRef    *boundObject `json:"boundObjectRef,omitempty"`
	} `json:"spec"`
	Status struct {
		Token               string    `json:"token"`
		ExpirationTimestamp time.Time `json:"expirationTimestamp"`
	} `json:"status"`
}

type boundObject struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

// Token requests a token that is valid for the audience only; empty: for the API server. It returns when the token
// expires. Errors are the API server's own.
func (c *Client) Token(ctx context.Context, f TokenFor, audience string) (string, time.Time, error) {
	request := tokenRequest{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"}
	request.Spec.ExpirationSeconds = f.Seconds
	if audience != "" {
		request.Spec.Audiences = []string{audience}
	}
	if f.Pod != "" {
		request.Spec.BoundObjectRef = &boundObject{Kind: "Pod", APIVersion: "v1", Name: f.Pod, UID: f.PodUID}
	}
	body, err := json.Marshal(request)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("encoding a request for a token: %w", err)
	}
	var granted tokenRequest
	err = decode(ctx, c.rest.Post().AbsPath("/api/v1/namespaces", f.Namespace, "serviceaccounts", f.Account, "token").
		SetHeader("Content-Type", "application/json").Body(body), &granted)
	return granted.Status.Token, granted.Status.ExpirationTimestamp, err
}

// decode makes a request and decodes the JSON of its answer.
func decode(ctx context.Context, request *rest.Request, into any) error {
	result := request.Do(ctx)
	if err := result.Error(); err != nil { // That of Raw has no message of the API server.
		return err
	}
	raw, err := result.Raw()
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return fmt.Errorf("decoding %s: %w", request.URL().Path, err)
	}
	return nil
}
