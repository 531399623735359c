// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"time"

	"k8s.io/client-go/rest"

	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/kube/kubeapi"
)

// clusterOf is the cluster as service accounts of the pod's namespace, whose tokens the client asks for.
func clusterOf(cfg *rest.Config, client *apiclient.Client) (*kubeapi.Client, error) {
	namespace := os.Getenv("POD_NAMESPACE")
	mint := func(ctx context.Context, account string) (string, time.Time, error) {
		of := apiclient.TokenFor{Namespace: namespace, Account: account, Seconds: kubeapi.TokenSeconds}
		return client.Token(ctx, of, "")
	}
	return kubeapi.New(cfg, mint, time.Now)
}
