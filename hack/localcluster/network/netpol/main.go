// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command netpol enforces the NetworkPolicies of the local cluster with the controller of kube-router, in the same way
// as k3s. kube-router's own program would compile its BGP router and its service proxy, which the cluster does not run.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/cloudnativelabs/kube-router/v2/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/v2/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/v2/pkg/options"
	"github.com/cloudnativelabs/kube-router/v2/pkg/utils"
	"github.com/coreos/go-iptables/iptables"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of the cluster")
	services := flag.String("service-cluster-ip-range", "", "addresses of Services")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *services); err != nil {
		fmt.Fprintln(os.Stderr, "netpol:", err)
		os.Exit(1)
	}
}

// run enforces the policies until ctx ends.
func run(ctx context.Context, kubeconfig, services string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	tables, err := iptables.NewWithProtocol(iptables.ProtocolIPv4)
	if err != nil {
		return fmt.Errorf("looking for iptables: %w", err)
	}
	sets, err := utils.NewIPSet(false)
	if err != nil {
		return fmt.Errorf("looking for ipset: %w", err)
	}
	settings := options.NewKubeRouterConfig()
	settings.EnableIPv4, settings.ClusterIPCIDRs = true, []string{services}

	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	policies := factory.Networking().V1().NetworkPolicies().Informer()
	namespaces := factory.Core().V1().Namespaces().Informer()
	controller, err := netpol.NewNetworkPolicyController(client, settings, pods, policies, namespaces, &sync.Mutex{},
		map[corev1.IPFamily]utils.IPTablesHandler{corev1.IPv4Protocol: tables},
		map[corev1.IPFamily]utils.IPSetHandler{corev1.IPv4Protocol: sets})
	if err != nil {
		return fmt.Errorf("creating the controller: %w", err)
	}
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		pods: controller.PodEventHandler, policies: controller.NetworkPolicyEventHandler,
		namespaces: controller.NamespaceEventHandler,
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watching: %w", err)
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	// The controller sends signs of life, for a health check that only the whole of kube-router has.
	alive := make(chan *healthcheck.ControllerHeartbeat)
	go func() {
		for range alive {
		}
	}()
	var running sync.WaitGroup
	running.Add(1)
	controller.Run(alive, ctx.Done(), &running)
	return nil
}
