// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// WriteKubeconfig writes a file that reaches the cluster as an administrator.
func (c *Cluster) WriteKubeconfig(path string) error {
	if err := clientcmd.WriteToFile(*c.kubeconfig(), path); err != nil {
		return fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return nil
}

func (c *Cluster) kubeconfig() *clientcmdapi.Config {
	const name = "testcluster"
	out := clientcmdapi.NewConfig()
	out.Clusters[name] = &clientcmdapi.Cluster{Server: c.Config.Host, CertificateAuthorityData: c.Config.CAData}
	out.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: c.Config.CertData,
		ClientKeyData: c.Config.KeyData}
	out.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	out.CurrentContext = name
	return out
}

// StartControllers runs some of Kubernetes' own controllers, such as garbage-collector-controller, at the rate of
// requests that the cluster's programs have elsewhere unless it is given; 0: 20 a second. stop waits until they ended.
func StartControllers(parent context.Context, kubeconfig string, rate int, names ...string) (stop func(), err error) {
	ctx, cancel := context.WithCancel(parent)
	args := []string{"--kubeconfig=" + kubeconfig, "--controllers=" + strings.Join(names, ","), "--leader-elect=false",
		"--secure-port=0"}
	if rate > 0 {
		args = append(args, fmt.Sprintf("--kube-api-qps=%d", rate), fmt.Sprintf("--kube-api-burst=%d", 2*rate))
	}
	cmd := exec.CommandContext(ctx, filepath.Join(os.Getenv(assetsVariable), "kube-controller-manager"), args...)
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("starting Kubernetes' controllers: %w", err)
	}
	return func() { cancel(); _ = cmd.Wait() }, nil
}
