from torchvision import datasets

train = datasets.FashionMNIST("data", train=True, download=True)
