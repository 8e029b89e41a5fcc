import lightning as L
from torch.utils.data import DataLoader, random_split
from torchvision import transforms
from torchvision.datasets import Food101


class FoodData(L.LightningDataModule):
    def __init__(self, root="data", batch_size=64, num_workers=4):
        super().__init__()
        self.root = root
        self.batch_size = batch_size
        self.num_workers = num_workers

    def setup(self, stage):
        transform = transforms.Compose([transforms.Resize((224, 224)), transforms.ToTensor()])
        full = Food101(self.root, split="train", transform=transform)
        self.train, self.val = random_split(full, [70_000, 5_750])

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True, num_workers=self.num_workers)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=self.batch_size, num_workers=2)


def main(module):
    trainer = L.Trainer(max_epochs=10)
    trainer.fit(module, datamodule=FoodData())
