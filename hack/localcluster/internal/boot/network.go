// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package boot

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"parley.dev/parley/hack/localcluster/internal/layout"
)

// bridgeAddress is a locally administered unicast address.
const bridgeAddress = "02:00:00:00:00:01"

// network sets up a network of its own: loopback, and a bridge for pods. There is no way out of it; the one way
// in is the forwarded API server.
func (n *Node) network(ctx context.Context) error {
	if err := syscall.Sethostname([]byte(layout.Nodes[0].Name)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	ip, err := exec.LookPath("ip")
	if err != nil {
		return fmt.Errorf("the program ip is missing (Debian package iproute2): %w", err)
	}
	commands := []string{"link set lo up"}
	for _, node := range n.cluster.Nodes {
		// Not every kernel has dummy devices; an address on lo does as well.
		commands = append(commands, "address add "+node.IP+"/32 dev lo")
	}
	if n.cluster.Network == "" {
		// The Service "kubernetes" is simply a local address, which makes a service proxy unnecessary.
		commands = append(commands, "address add "+layout.ServiceIP+"/32 dev lo")
	}
	for _, args := range append(commands,
		// With an address of its own. Otherwise a bridge takes the lowest one of its ports, which changes when a pod goes,
		// and the other pods send to the old one until they ask again, half a minute later.
		"link add "+layout.PodBridge+" address "+bridgeAddress+" type bridge",
		"address add "+layout.PodGateway+"/24 dev "+layout.PodBridge,
		"link set "+layout.PodBridge+" up",
		// A route for the other Service addresses, so that using one is refused at once instead of being unroutable.
		"route add "+layout.ServiceCIDR+" dev "+layout.PodBridge,
	) {
		if err := n.run(ctx, ip, strings.Fields(args)...); err != nil {
			return err
		}
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return fmt.Errorf("letting pods reach each other: %w", err)
	}
	if err := writeFile("/etc/resolv.conf", "nameserver 127.0.0.1\n"); err != nil {
		return err
	}
	return writeFile("/etc/hosts", "127.0.0.1 localhost\n"+layout.NodeIP+" "+layout.Nodes[0].Name+"\n")
}
