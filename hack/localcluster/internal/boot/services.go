// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package boot

import (
	"context"
	"errors"

	"parley.dev/parley/hack/localcluster/internal/apiclient"
	"parley.dev/parley/hack/localcluster/internal/component"
	"parley.dev/parley/hack/localcluster/internal/layout"
)

// services starts the service proxy, the DNS server and the policy controller, and waits until the Service of the API
// server leads there.
func (n *Node) services(ctx context.Context) error {
	if err := n.keep(ctx, component.Network(n.cluster)...); err != nil {
		return err
	}
	if err := apiclient.Until(ctx, poll, n.createDNS); err != nil {
		return err
	}
	service, err := apiclient.New(n.cluster.PKI(), "admin", "https://"+layout.ServiceIP)
	if err != nil {
		return err
	}
	defer service.Close()
	return apiclient.Until(ctx, poll, service.Healthy)
}

type object = map[string]any

// createDNS creates the Service kube-dns. CoreDNS is no pod, so that the Service has no selector: its endpoint is the
// node.
func (n *Node) createDNS(ctx context.Context) error {
	const name, namespace = "kube-dns", "/namespaces/kube-system/"
	ports := []object{{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}}
	return errors.Join(
		n.api.Create(ctx, "/api/v1"+namespace+"services", object{
			"apiVersion": "v1", "kind": "Service", "metadata": object{"name": name},
			"spec": object{"clusterIP": layout.DNSIP, "ports": ports},
		}),
		n.api.Create(ctx, "/apis/discovery.k8s.io/v1"+namespace+"endpointslices", object{
			"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "ports": ports,
			"metadata":  object{"name": name, "labels": object{"kubernetes.io/service-name": name}},
			"endpoints": []object{{"addresses": []string{layout.NodeIP}}},
		}))
}
