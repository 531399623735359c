// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"parley.dev/parley/internal/workspace/template"
)

// clusterFacts are properties of the API server.
type clusterFacts struct {
	client *discovery.DiscoveryClient
	// issuer of the cluster's service-account tokens: relays and agents verify their callers by that.
	issuer string
	// placement is how the agent comes into workspaces.
	placement template.Placement
}

func readCluster(ctx context.Context, cfg *rest.Config) (*clusterFacts, error) {
	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	f := &clusterFacts{client: client}
	if f.issuer, err = f.readIssuer(ctx); err != nil {
		return nil, err
	}
	f.placement, err = f.readPlacement()
	return f, err
}

func (f *clusterFacts) readIssuer(ctx context.Context) (string, error) {
	raw, err := f.client.RESTClient().Get().AbsPath("/.well-known/openid-configuration").DoRaw(ctx)
	if err != nil {
		return "", fmt.Errorf("asking for the issuer of service-account tokens: %w", err)
	}
	var document struct {
		Issuer string `json:"issuer"`
	}
	if err := json.Unmarshal(raw, &document); err != nil || document.Issuer == "" {
		return "", fmt.Errorf("the API server names no issuer of service-account tokens: %w", err)
	}
	return document.Issuer, nil
}

// keys are the issuer's public keys, a JWKS.
func (f *clusterFacts) keys(ctx context.Context) ([]byte, error) {
	return f.client.RESTClient().Get().AbsPath("/openid/v1/jwks").
		SetHeader("Accept", "application/jwk-set+json, application/json").DoRaw(ctx)
}

// imageVolumes is the first version of Kubernetes in which every node can mount an image as a volume.
var imageVolumes = version.MajorMinor(1, 36)

func (f *clusterFacts) readPlacement() (template.Placement, error) {
	info, err := f.client.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("asking for the API server's version: %w", err)
	}
	if v, err := version.ParseGeneric(info.GitVersion); err == nil && v.AtLeast(imageVolumes) {
		return template.ImageVolume, nil
	}
	return template.InitContainer, nil
}
