// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Put writes objects of custom resources into etcd as they are, past the API server: many times as many in the same
// time. They must be complete and valid, as the API server would have stored them. Each has a revision of its own, as
// an API server expects.
func (c *Cluster) Put(ctx context.Context, objects ...client.Object) error {
	to := *c.env.ControlPlane.Etcd.URL
	to.Path = "/v3/kv/put"
	for _, o := range objects {
		key, value, err := c.stored(o)
		if err != nil {
			return err
		}
		body, err := json.Marshal(map[string][]byte{"key": []byte(key), "value": value})
		if err != nil {
			return fmt.Errorf("encoding %s: %w", key, err)
		}
		if err := post(ctx, to.String(), body); err != nil {
			return fmt.Errorf("putting %s into etcd: %w", key, err)
		}
	}
	return nil
}

func post(ctx context.Context, to string, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	_, err = io.Copy(io.Discard, answer.Body) // So that the connection can be used again.
	return err
}

// stored is where and how an API server keeps the object.
func (c *Cluster) stored(o client.Object) (key string, value []byte, err error) {
	kind, err := apiutil.GVKForObject(o, c.Client.Scheme())
	if err != nil {
		return "", nil, fmt.Errorf("finding the kind of %T: %w", o, err)
	}
	mapping, err := c.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return "", nil, fmt.Errorf("finding the resource of %s: %w", kind, err)
	}
	key = "/registry/" + kind.Group + "/" + mapping.Resource.Resource + "/"
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		key += o.GetNamespace() + "/"
	}
	o.GetObjectKind().SetGroupVersionKind(kind)
	if value, err = json.Marshal(o); err != nil {
		return "", nil, fmt.Errorf("encoding %s: %w", o.GetName(), err)
	}
	return key + o.GetName(), value, nil
}
