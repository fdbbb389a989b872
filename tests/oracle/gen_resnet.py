"""Records what PyTorch answers for a seeded ResNet-18, and its traced graph: tests/fixtures/models/resnet18.{json,txt}.

The modules and their names are torchvision's; the weights are what PyTorch draws after torch.manual_seed(0), so that no
file of weights is needed. Usage: python gen_resnet.py FIXTURES_DIR   (needs torch)
"""
import json
import sys
from pathlib import Path

import torch
from torch import nn


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inplanes, planes, stride=1, downsample=None):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = downsample

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, block, layers):
        super().__init__()
        self.inplanes = 64
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = self.make_layer(block, 64, layers[0])
        self.layer2 = self.make_layer(block, 128, layers[1], 2)
        self.layer3 = self.make_layer(block, 256, layers[2], 2)
        self.layer4 = self.make_layer(block, 512, layers[3], 2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, 1000)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def make_layer(self, block, planes, blocks, stride=1):
        downsample = None
        outplanes = planes * block.expansion
        if stride != 1 or self.inplanes != outplanes:
            conv = nn.Conv2d(self.inplanes, outplanes, 1, stride, bias=False)
            downsample = nn.Sequential(conv, nn.BatchNorm2d(outplanes))
        layers = [block(self.inplanes, planes, stride, downsample)]
        self.inplanes = outplanes
        layers += [block(outplanes, planes) for _ in range(1, blocks)]
        return nn.Sequential(*layers)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


torch.manual_seed(0)
model = ResNet(BasicBlock, [2, 2, 2, 2]).eval()
x = torch.sin(torch.arange(3 * 224 * 224, dtype=torch.float32) * 0.01).reshape(1, 3, 224, 224)
with torch.no_grad():
    logits = model(x)[0]
out = Path(sys.argv[1]) / "models"
out.mkdir(exist_ok=True)
weights = {name: [it.flatten()[:4].tolist(), float(it.double().sum())] for name, it in model.state_dict().items()}
(out / "resnet18.json").write_text(json.dumps({"logits": logits.tolist(), "weights": weights}) + "\n")
(out / "resnet18.txt").write_text(str(torch.fx.symbolic_trace(model).graph) + "\n")
