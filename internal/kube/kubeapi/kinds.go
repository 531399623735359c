// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// keptFor is how long it is known which kinds there are. A name that is not among them is looked for again.
	keptFor = time.Minute
	// pause is the least time between two looks.
	pause = 2 * time.Second
	// maxAccounts bounds for how many accounts it is known.
	maxAccounts = 64
	// asGroups asks for all groups at once (Kubernetes 1.30).
	asGroups = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
)

// Kind is a kind of objects, and how they are asked for.
type Kind struct {
	schema.GroupVersionKind
	// Resource is its part of a path.
	Resource string
	// Names are what people call it: singular and short names.
	Names []string
	// Namespaced is true if its objects are in namespaces.
	Namespaced bool
}

// Path of the object of that name; without name that of the list. A namespace that the kind has no use for is left out;
// an empty one stands for all.
func (k *Kind) Path(namespace, name string) []string {
	path := []string{"apis", k.Group, k.Version}
	if k.Group == "" {
		path = []string{"api", k.Version}
	}
	if k.Namespaced && namespace != "" {
		path = append(path, "namespaces", namespace)
	}
	path = append(path, k.Resource)
	if name != "" {
		path = append(path, name)
	}
	return path
}

// IsSecret reports whether its objects are Secrets.
func (k *Kind) IsSecret() bool { return k.Group == "" && k.Resource == "secrets" }

// Title is the kind and its group, as people write it.
func (k *Kind) Title() string { return k.GroupVersion().String() + " " + k.Kind }

// called reports whether the name is one of the kind's.
func (k *Kind) called(name string) bool {
	return name == k.Resource || name == strings.ToLower(k.Kind) || slices.Contains(k.Names, name)
}

// kinds are those that the API server has, as each account sees them.
type kinds struct {
	now   func() time.Time
	mu    sync.Mutex
	known map[string]*discovered
}

type discovered struct {
	kinds []Kind
	at    time.Time
}

// UnknownKindError is that the API server has no kind of that name.
type UnknownKindError struct{ Name string }

// Error tells which.
func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("the API server has no kind of objects called %q; write it as kubectl takes it, such as pods, "+
		"deployments.apps or certificates.cert-manager.io; a subresource cannot be read", e.Name)
}

// Find finds a kind by a name as kubectl takes it: plural, singular or short, or the kind itself, with its group behind
// a dot, and its version between them if there is one. Where several groups have it the first one counts, as the API
// server orders them; the core group is before all others.
func (c *Client) Find(ctx context.Context, account, name string) (*Kind, error) {
	resource, group, _ := strings.Cut(strings.ToLower(name), ".")
	version, inVersion, _ := strings.Cut(group, ".")
	return c.find(ctx, account, name, func(k *Kind) bool {
		return k.called(resource) && (group == "" || k.Group == group || k.Version == version && k.Group == inVersion)
	})
}

// Of finds a kind of which an object says that it is.
func (c *Client) Of(ctx context.Context, account string, gvk schema.GroupVersionKind) (*Kind, error) {
	name := gvk.GroupVersion().String() + " " + gvk.Kind
	return c.find(ctx, account, name, func(k *Kind) bool { return k.GroupVersionKind == gvk })
}

func (c *Client) find(ctx context.Context, account, name string, is func(k *Kind) bool) (*Kind, error) {
	for _, age := range []time.Duration{keptFor, pause} { // What is not known may be new.
		all, err := c.discover(ctx, account, age)
		if err != nil {
			return nil, err
		}
		for i := range all {
			if is(&all[i]) {
				return &all[i], nil
			}
		}
	}
	return nil, &UnknownKindError{Name: name}
}

// discover returns the kinds as they were so long ago at most.
func (c *Client) discover(ctx context.Context, account string, age time.Duration) ([]Kind, error) {
	k := &c.kinds
	k.mu.Lock()
	known := k.known[account]
	k.mu.Unlock()
	now := k.now()
	if known != nil && now.Sub(known.at) < age {
		return known.kinds, nil
	}
	var all []Kind
	for _, root := range []string{"api", "apis"} {
		raw, err := c.Do(ctx, account, Request{Path: []string{root}, Accept: asGroups})
		if err != nil {
			return nil, err
		}
		found, err := decodeGroups(raw)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.known) >= maxAccounts {
		clear(k.known)
	}
	k.known[account] = &discovered{kinds: all, at: now}
	return all, nil
}

// groups is apidiscovery.k8s.io/v2 APIGroupDiscoveryList with the fields that are used. The kind itself would link in
// more.
type groups struct {
	Kind  string `json:"kind"`
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Versions []struct {
			Version   string `json:"version"`
			Resources []struct {
				Resource     string `json:"resource"`
				ResponseKind struct {
					Group   string `json:"group"`
					Version string `json:"version"`
					Kind    string `json:"kind"`
				} `json:"responseKind"`
				Scope    string   `json:"scope"`
				Singular string   `json:"singularResource"`
				Short    []string `json:"shortNames"`
			} `json:"resources"`
		} `json:"versions"`
	} `json:"items"`
}

func decodeGroups(raw []byte) (all []Kind, err error) {
	var list groups
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("reading which kinds the API server has: %w", err)
	}
	if list.Kind != "APIGroupDiscoveryList" {
		return nil, fmt.Errorf("the API server does not tell which kinds it has: Kubernetes 1.30 or later does")
	}
	for _, group := range list.Items {
		for _, version := range group.Versions {
			for _, r := range version.Resources {
				all = append(all, Kind{
					GroupVersionKind: schema.GroupVersionKind{Group: group.Metadata.Name, Version: version.Version,
						Kind: r.ResponseKind.Kind},
					Resource: r.Resource, Names: append([]string{r.Singular}, r.Short...), Namespaced: r.Scope == "Namespaced",
				})
			}
		}
	}
	return all, nil
}
